"""Recording from the interpreter's start, for ``DFTRACER_INIT=PRELOAD`` and ``HYBRID``.

The distribution's ``.pth`` file imports this module in every interpreter whose environment names a mode or a
configuration file. It begins what a preloaded library would have begun, so that programs which never mention DFTracer
are traced too. It must not fail: the program has not begun yet.
"""

try:
    from dftracer import _recording

    _recording.begin_at_start()
except Exception as error:
    import sys

    print(f"weftline: cannot record from the start of the interpreter: {error}", file=sys.stderr)
