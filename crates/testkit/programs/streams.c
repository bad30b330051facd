/* Hazard: streams change their buffer, position, file and descriptor under way.
 * Holds: setvbuf, fseek, ftell, fflush, rewind, freopen, fdopen, fgetpos keep their results, and I/O is attributed to the
 * file that the stream is at that moment. */
#include "hazard.h"

int main(void) {
    static char own_buffer[512];
    char block[100];
    memset(block, 's', sizeof block);
    FILE *stream = fopen("first.bin", "w+");
    MUST(stream && setvbuf(stream, own_buffer, _IOFBF, sizeof own_buffer) == 0);
    for (int i = 0; i < 10; i++) MUST(fwrite(block, 10, 10, stream) == 10);
    MUST(fflush(stream) == 0 && ftell(stream) == 1000);
    MUST(fseek(stream, 100, SEEK_SET) == 0 && fread(block, 1, 100, stream) == 100 && ftello(stream) == 200);
    MUST(fseeko(stream, -50, SEEK_END) == 0 && fread(block, 1, 100, stream) == 50 && feof(stream));
    rewind(stream);
    fpos_t place;
    MUST(fgetpos(stream, &place) == 0 && fread(block, 7, 3, stream) == 3 && fsetpos(stream, &place) == 0);
    MUST((stream = freopen("second.bin", "w", stream)));
    MUST(fwrite(block, 1, 100, stream) == 100 && fclose(stream) == 0);
    int fd = open("third.bin", O_CREAT | O_RDWR, 0644);
    MUST(fd >= 0 && (stream = fdopen(fd, "w")));
    MUST(fwrite(block, 1, 100, stream) == 100 && fileno(stream) == fd && fclose(stream) == 0);
    MUST(fopen("missing.bin", "r") == NULL && errno == ENOENT);
    return 0;
}
