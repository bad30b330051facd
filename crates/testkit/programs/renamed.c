/* Hazard: a file is renamed or unlinked while it is open.
 * Holds: I/O is attributed to the name that the file has at that moment; an unlinked file keeps its last one. */
#include "hazard.h"

int main(void) {
    int fd = open("old.bin", O_CREAT | O_RDWR, 0644);
    MUST(fd >= 0 && write(fd, "0123456789", 10) == 10);
    MUST(rename("old.bin", "new.bin") == 0);
    MUST(write(fd, "0123456789", 10) == 10);
    int again = open("new.bin", O_RDONLY);
    char buffer[20];
    MUST(again >= 0 && read(again, buffer, 20) == 20 && close(again) == 0);
    int gone = open("gone.bin", O_CREAT | O_WRONLY, 0644);
    MUST(gone >= 0 && unlink("gone.bin") == 0 && write(gone, "0123456789", 10) == 10);
    MUST(close(gone) == 0 && close(fd) == 0);
    return 0;
}
