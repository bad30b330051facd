/* Hazard: copies inside the kernel: copy_file_range, sendfile, splice, tee.
 * Holds: bytes are exact, on both files. */
#include "hazard.h"
#include <sys/sendfile.h>

int main(void) {
    work("from.bin", 1000);
    int from = open("from.bin", O_RDONLY), to = open("to.bin", O_CREAT | O_RDWR, 0644), one[2], two[2];
    char sink[64];
    MUST(from >= 0 && to >= 0 && pipe(one) == 0 && pipe(two) == 0);
    for (int i = 0; i < 50; i++) MUST(copy_file_range(from, NULL, to, NULL, 64, 0) == 64);
    for (int i = 0; i < 50; i++) {
        off_t offset = 64;
        MUST(sendfile(to, from, &offset, 64) == 64);
    }
    for (int i = 0; i < 50; i++) {
        loff_t in = 128;
        MUST(splice(from, &in, one[1], NULL, 64, 0) == 64);
        MUST(tee(one[0], two[1], 64, 0) == 64);
        MUST(read(two[0], sink, 64) == 64);
        MUST(splice(one[0], NULL, to, NULL, 64, 0) == 64);
    }
    return 0;
}
