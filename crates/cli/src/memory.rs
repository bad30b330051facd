//! How the C library's allocator treats large blocks.
//!
//! An analysis makes and drops columns of a megabyte by the thousand. By default each is a mapping of its own whose pages the kernel clears and takes back
//! every time: a tenth of the time of an index build, measured with 2 million events (0.41 s of system time became 0.21 s).

/// Keeps large blocks for the next use.
pub(crate) fn keep_large_blocks() {
    const MIB: libc::c_int = 1 << 20;
    for (option, value) in
        [(libc::M_MMAP_THRESHOLD, 32 * MIB), (libc::M_TRIM_THRESHOLD, 512 * MIB), (libc::M_TOP_PAD, 64 * MIB)]
    {
        // SAFETY: mallopt changes settings of the allocator; it is called before there is a second thread.
        unsafe { libc::mallopt(option, value) };
    }
}
