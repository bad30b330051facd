/* Packs the checkpoint shards of a directory into one archive: pack DIRECTORY ARCHIVE
 *
 * Threads copy the shards with pread and pwrite, each to its own place in the archive; the archive is then read
 * back through stdio for its checksum, which does not depend on the order in which threads finished.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THREADS = 4, BLOCK = 16 * 1024, MAX_SHARDS = 1024, CHECK_BLOCK = 4096 };

struct shard {
    char path[4096];
    off_t size;
    off_t place; /* where it begins in the archive */
};

static struct shard shards[MAX_SHARDS];
static int shard_count;
static atomic_int next_shard;
static int archive;

static void fail(const char *what, const char *path) {
    fprintf(stderr, "pack: %s %s: %s\n", what, path, strerror(errno));
    exit(1);
}

static int by_path(const void *left, const void *right) {
    return strcmp(((const struct shard *)left)->path, ((const struct shard *)right)->path);
}

static void find_shards(const char *directory) {
    DIR *listing = opendir(directory);
    if (!listing) fail("cannot open", directory);
    for (struct dirent *entry; (entry = readdir(listing));) {
        const char *end = strrchr(entry->d_name, '.');
        if (!end || strcmp(end, ".ckpt") != 0) continue;
        if (shard_count == MAX_SHARDS) break;
        struct shard *shard = &shards[shard_count++];
        snprintf(shard->path, sizeof shard->path, "%s/%s", directory, entry->d_name);
        struct stat status;
        if (stat(shard->path, &status) != 0) fail("cannot stat", shard->path);
        shard->size = status.st_size;
    }
    closedir(listing);
    qsort(shards, (size_t)shard_count, sizeof *shards, by_path);
    off_t place = 0;
    for (int index = 0; index < shard_count; index++) {
        shards[index].place = place;
        place += shards[index].size;
    }
}

static void *copy_shards(void *unused) {
    (void)unused;
    char block[BLOCK];
    for (int index; (index = atomic_fetch_add(&next_shard, 1)) < shard_count;) {
        const struct shard *shard = &shards[index];
        int file = open(shard->path, O_RDONLY | O_CLOEXEC);
        if (file < 0) fail("cannot open", shard->path);
        for (off_t done = 0; done < shard->size;) {
            ssize_t count = pread(file, block, sizeof block, done);
            if (count <= 0) fail("cannot read", shard->path);
            if (pwrite(archive, block, (size_t)count, shard->place + done) != count) fail("cannot write", "archive");
            done += count;
        }
        close(file);
    }
    return NULL;
}

/* FNV-1a. */
static uint32_t checksum(const char *path, long *size) {
    FILE *file = fopen(path, "rb");
    if (!file) fail("cannot open", path);
    uint32_t sum = 2166136261u;
    unsigned char block[CHECK_BLOCK];
    *size = 0;
    for (size_t count; (count = fread(block, 1, sizeof block, file)) > 0;) {
        for (size_t at = 0; at < count; at++) sum = (sum ^ block[at]) * 16777619u;
        *size += (long)count;
    }
    fclose(file);
    return sum;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: pack DIRECTORY ARCHIVE\n");
        return 2;
    }
    find_shards(argv[1]);
    archive = open(argv[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (archive < 0) fail("cannot create", argv[2]);
    pthread_t threads[THREADS];
    for (int index = 0; index < THREADS; index++)
        if ((errno = pthread_create(&threads[index], NULL, copy_shards, NULL)) != 0) fail("cannot start", "a thread");
    for (int index = 0; index < THREADS; index++) pthread_join(threads[index], NULL);
    if (fsync(archive) != 0) fail("cannot sync", argv[2]);
    close(archive);

    long size;
    uint32_t sum = checksum(argv[2], &size);
    printf("packed %d shards, %ld bytes, checksum %08x\n", shard_count, size, sum);
    return 0;
}
