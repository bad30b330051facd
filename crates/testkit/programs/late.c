/* The recorder comes late: by dlopen, into a process that runs, and its hooks are bound and unbound at run time.
 * Usage: late LIBRARY LIVE STEP...; a step is a word, or word=argument, from the table at the end of this file.
 * Holds: calls are recorded exactly while the recorder is on and bound, by whatever place they reach libc. */
#include "hazard.h"
#include <dlfcn.h>
#include <link.h>

/* The recorder's table, as recorder/src/table.rs lays it out. */
struct table {
    char magic[8];
    uint32_t size, on, epoch, wants_usage;
    uint64_t (*ticks)(void);
    uint32_t (*intern)(const char *, size_t);
    void (*event)(const void *);
    void (*usage)(void *);
    int (*start)(const char *, size_t);
    void (*stop)(int);
    int (*bind)(uint32_t);
    void (*at_end)(void (*)(int));
};
enum { NONE, LIFE, ALL };

static const char *recorder, *live, *program;
static struct table *table;

static void load(const char *unused) {
    (void)unused;
    void *library = dlopen(recorder, RTLD_NOW | RTLD_GLOBAL);
    if (!library)
        must_failed(dlerror(), 0);
    struct table **cell = dlsym(library, "weft_recorder_v1");
    MUST(cell && *cell && memcmp((*cell)->magic, "weftTBL1", 8) == 0 && (*cell)->size >= sizeof **cell);
    table = *cell;
    /* Unloading it would leave addresses of its functions everywhere. */
    MUST(dlclose(library) == 0 && dlopen(recorder, RTLD_NOW | RTLD_NOLOAD));
}
static void start(const char *unused) { (void)unused; MUST(table->start(live, strlen(live)) == 0 && table->on == 1); }
static void refused(const char *path) { MUST(table->start(path, strlen(path)) == -1 && table->on == 0); }
static void stop(const char *status) { table->stop(status ? atoi(status) : 0); MUST(table->on == 0); }
static void all(const char *unused) { (void)unused; MUST(table->bind(ALL) > 200); }
static void life(const char *unused) { (void)unused; int n = table->bind(LIFE); MUST(n > 0 && n < 50); }
static void none(const char *unused) { (void)unused; MUST(table->bind(NONE) == 0); }
static void senseless(const char *unused) { (void)unused; MUST(table->bind(7) == -1); }

/* A program's end is announced. Raw calls: nothing of this may be in the trace. */
static void ended(int sudden) {
    const char *text = sudden ? "ended suddenly\n" : "ended\n";
    syscall(SYS_write, 2, text, strlen(text));
}
static void at_end(const char *unused) { (void)unused; table->at_end(ended); }
static void leave(const char *how) {
    if (strcmp(how, "_exit") == 0)
        _exit(7);
    if (strcmp(how, "_Exit") == 0)
        _Exit(7);
    if (strcmp(how, "quick_exit") == 0)
        quick_exit(7);
    if (strcmp(how, "exit_group") == 0)
        syscall(SYS_exit_group, 7);
    exit(7);
}

/* The standard work through pointers. */
struct calls {
    int (*open)(const char *, int, ...);
    ssize_t (*pwrite)(int, const void *, size_t, off_t);
    int (*close)(int);
};
static void work_by(const struct calls *by, const char *path) {
    char block[64];
    memset(block, 'w', sizeof block);
    int fd = by->open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    MUST(fd >= 0);
    for (int i = 0; i < 100; i++)
        MUST(by->pwrite(fd, block, sizeof block, (off_t)i * 64) == 64);
    MUST(by->close(fd) == 0);
}

/* Initialised data: SQLite calls libc through such a table. Not const: the compiler must not look through it. */
static struct calls in_data = {open, pwrite, close};
static const struct calls *volatile in_constant_data = &(const struct calls){open, pwrite, close};
static struct calls copied;

static void direct(const char *path) { work(path, 100); }
static void say(const char *text) { MUST(dprintf(1, "%s\n", text) > 0); }
static void data(const char *path) { work_by(&in_data, path); }
static void constant_data(const char *path) { work_by(in_constant_data, path); }
static struct calls found_by(void *handle) {
    return (struct calls){dlsym(handle, "open"), dlsym(handle, "pwrite"), dlsym(handle, "close")};
}
static void by_symbol(void *handle, const char *path) {
    struct calls found = found_by(handle);
    work_by(&found, path);
}
static void copy(const char *unused) { (void)unused; copied = found_by(RTLD_DEFAULT); }
static void by_copies(const char *path) { work_by(&copied, path); }
static void by_default(const char *path) { by_symbol(RTLD_DEFAULT, path); }
static void by_next(const char *path) { by_symbol(RTLD_NEXT, path); }
static void by_handle(const char *path) {
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    MUST(libc);
    by_symbol(libc, path);
    MUST(dlclose(libc) == 0);
}

/* A descriptor that is there before the recorder is. */
static int held = -1;
static void hold(const char *path) { held = open(path, O_CREAT | O_RDWR | O_TRUNC, 0644); MUST(held >= 0); }
static void write_held(const char *unused) { (void)unused; MUST(write(held, "0123456789", 10) == 10); }
static void close_held(const char *unused) { (void)unused; MUST(close(held) == 0); }
static void *mapping;
static void map_held(const char *unused) {
    (void)unused;
    mapping = mmap(NULL, 4096, PROT_READ, MAP_SHARED, held, 0);
    MUST(mapping != MAP_FAILED);
}
static void unmap(const char *unused) { (void)unused; MUST(munmap(mapping, 4096) == 0); }

/* Libraries that come and go. */
static void *library;
static void open_lazy(const char *path) {
    library = dlopen(path, RTLD_LAZY);
    if (!library)
        must_failed(dlerror(), 0);
}
static void open_now(const char *path) { MUST((library = dlopen(path, RTLD_NOW | RTLD_GLOBAL))); }
static void call_library(const char *unused) {
    (void)unused;
    void (*function)(void) = (void (*)(void))dlsym(library, "library_work");
    MUST(function);
    function();
}
static void close_library(const char *unused) { (void)unused; MUST(dlclose(library) == 0); }

/* A function of the program's own under a name of libc's: whoever calls it means this one. */
long host_sum(long, long) __asm__("sync");
long host_sum(long a, long b) { return a + b; }

/* A namespace of its own, with a C library of its own: its calls are not ours. */
static void other_namespace(const char *path) { MUST((library = dlmopen(LM_ID_NEWLM, path, RTLD_NOW))); }

/* Another library with a recorder: it is told of ours, unless its own records. */
static struct table **other_cell;
static void other_recorder(const char *path) {
    open_lazy(path);
    other_cell = dlsym(library, "weft_recorder_v1");
    MUST(other_cell && (*other_cell)->on == 0);
}
static void other_global_recorder(const char *path) {
    other_recorder(path);
    MUST(dlopen(path, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL) == library);
}
static void other_records(const char *unused) { (void)unused; (*other_cell)->on = 1; }
static void told(const char *unused) { (void)unused; MUST(*other_cell == table); }
static void not_told(const char *unused) { (void)unused; MUST(*other_cell != table && (*other_cell)->on == 1); }

/* A thread that is older than the recorder. */
static pthread_t old_thread;
static const char *volatile old_thread_path;
static void *wait_and_work(void *unused) {
    while (!old_thread_path)
        usleep(1000);
    work(old_thread_path, 100);
    return unused;
}
static void make_thread(const char *unused) {
    (void)unused;
    MUST(pthread_create(&old_thread, NULL, wait_and_work, NULL) == 0);
}
static void work_in_thread(const char *path) {
    old_thread_path = path;
    MUST(pthread_join(old_thread, NULL) == 0);
}

/* Children. */
static void forked(const char *path) {
    pid_t child = fork();
    if (child == 0) {
        work(path, 100);
        _exit(0);
    }
    reap(child, 0);
}
static void vforked(const char *unused) {
    (void)unused;
    pid_t child = vfork();
    if (child == 0)
        _exit(3);
    reap(child, 3);
}
static void run(const char *path) {
    pid_t child = fork();
    if (child == 0) {
        execl(path, path, (char *)NULL);
        _exit(99);
    }
    reap(child, 0);
}
static void exec_again(const char *step) {
    execl(program, program, recorder, live, step, (char *)NULL);
    MUST(!"exec came back");
}
static void exec_fails(const char *path) { MUST(execl(path, path, (char *)NULL) == -1 && errno == ENOENT); }

/* Every place that holds an address, and how its page is protected. */
struct place { uintptr_t *at, value; char protection[5]; };
static struct place *places;
static size_t place_count;
static uintptr_t recorder_start, recorder_end;

/* /proc/self/maps, read once for each snapshot. */
static struct range { uintptr_t start, end; char protection[5]; } ranges[2000];
static size_t range_count;
static void read_ranges(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    MUST(maps);
    char line[5000];
    for (range_count = 0; fgets(line, sizeof line, maps); range_count++) {
        struct range *range = &ranges[range_count];
        MUST(range_count < sizeof ranges / sizeof *ranges);
        MUST(sscanf(line, "%lx-%lx %4s", &range->start, &range->end, range->protection) == 3);
    }
    MUST(fclose(maps) == 0);
}
static const char *protection_of(uintptr_t at) {
    static size_t last;
    for (size_t i = 0; i < range_count; i++, last = (last + 1) % range_count)
        if (ranges[last].start <= at && at < ranges[last].end)
            return ranges[last].protection;
    must_failed("an address that is not mapped", 0);
    return NULL;
}
static uintptr_t pointer(const struct dl_phdr_info *info, uintptr_t value) {
    return value < info->dlpi_addr ? info->dlpi_addr + value : value;
}
static void add_place(uintptr_t *at) {
    if (place_count % 4096 == 0)
        MUST((places = realloc(places, (place_count + 4096) * sizeof *places)));
    places[place_count] = (struct place){.at = at, .value = *at};
    strcpy(places[place_count].protection, protection_of((uintptr_t)at));
    place_count++;
}
static int add_object(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    const ElfW(Dyn) *dynamic = NULL;
    uintptr_t lowest = UINTPTR_MAX, highest = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(info->dlpi_addr + header->p_vaddr);
        if (header->p_type == PT_LOAD) {
            uintptr_t start = info->dlpi_addr + header->p_vaddr;
            lowest = start < lowest ? start : lowest;
            highest = start + header->p_memsz > highest ? start + header->p_memsz : highest;
        }
    }
    if (strstr(info->dlpi_name, "libweft_preload")) {
        recorder_start = lowest, recorder_end = highest;
        return 0;
    }
    if (!dynamic || strstr(info->dlpi_name, "vdso") || strstr(info->dlpi_name, "ld-linux"))
        return 0;
    uintptr_t tables[2] = {0}, sizes[2] = {0}, symbols = 0, strings = 0;
    for (; dynamic->d_tag; dynamic++) {
        uintptr_t value = dynamic->d_un.d_ptr;
        switch (dynamic->d_tag) {
        case DT_RELA: tables[0] = pointer(info, value); break;
        case DT_RELASZ: sizes[0] = value; break;
        case DT_JMPREL: tables[1] = pointer(info, value); break;
        case DT_PLTRELSZ: sizes[1] = value; break;
        case DT_SYMTAB: symbols = pointer(info, value); break;
        case DT_STRTAB: strings = pointer(info, value); break;
        }
    }
    for (int i = 0; i < 2; i++)
        for (uintptr_t at = tables[i]; tables[i] && at < tables[i] + sizes[i]; at += sizeof(ElfW(Rela))) {
            const ElfW(Rela) *entry = (const ElfW(Rela) *)at;
            if (ELF64_R_SYM(entry->r_info) && entry->r_offset % 8 == 0)
                add_place((uintptr_t *)(info->dlpi_addr + entry->r_offset));
        }
    for (uintptr_t at = symbols; strings > symbols && at + sizeof(ElfW(Sym)) <= strings; at += sizeof(ElfW(Sym)))
        add_place((uintptr_t *)&((ElfW(Sym) *)at)->st_value);
    return 0;
}
static void snapshot(const char *unused) {
    (void)unused;
    place_count = 0;
    read_ranges();
    dl_iterate_phdr(add_object, NULL);
    MUST(place_count > 3000);
}
/* A place that was not bound yet may have been bound meanwhile, as in any program; nothing else may differ. */
static void same(const char *unused) {
    (void)unused;
    size_t before = place_count;
    struct place *old = malloc(before * sizeof *old);
    MUST(old);
    memcpy(old, places, before * sizeof *old);
    snapshot(NULL);
    MUST(place_count >= before && recorder_start);
    size_t differ = 0;
    for (size_t i = 0; i < place_count; i++) {
        MUST(places[i].value < recorder_start || places[i].value >= recorder_end);
        if (i >= before || old[i].at != places[i].at)
            continue;
        MUST(strcmp(old[i].protection, places[i].protection) == 0);
        Dl_info was, is;
        if (old[i].value != places[i].value) {
            differ++;
            /* Bound lazily: it pointed into its own object, and now points into the library that has the function. */
            MUST(dladdr((void *)old[i].value, &was) && dladdr(old[i].at, &is) && was.dli_fbase == is.dli_fbase);
        }
    }
    MUST(differ < 40);
    free(old);
}

/* Threads that work, and one that loads and unloads, while hooks come and go. */
static volatile int storm_over;
static void *worker(void *name) {
    long calls = 0;
    while (!storm_over) {
        work(name, 10);
        calls += 10;
    }
    return (void *)calls;
}
static void *loader(void *path) {
    long rounds = 0;
    for (; !storm_over; rounds++) {
        void *handle = dlopen(path, RTLD_NOW);
        MUST(handle && dlclose(handle) == 0);
    }
    return (void *)rounds;
}
static void storm(const char *path) {
    static char *names[] = {"0.storm", "1.storm", "2.storm"};
    pthread_t threads[4];
    storm_over = 0;
    for (int i = 0; i < 3; i++)
        MUST(pthread_create(&threads[i], NULL, worker, names[i]) == 0);
    MUST(pthread_create(&threads[3], NULL, loader, (void *)path) == 0);
    for (int i = 0; i < 1000; i++) {
        MUST(table->bind(ALL) > 200);
        MUST(table->bind(NONE) == 0);
    }
    storm_over = 1;
    for (int i = 0; i < 4; i++) {
        void *done;
        MUST(pthread_join(threads[i], &done) == 0 && (long)done > 0);
        if (i < 3)
            dprintf(1, "%s %ld\n", names[i], (long)done);
    }
}

/* Every end of a recording begins another one while threads work. */
static void restarts(const char *unused) {
    (void)unused;
    static char *names[] = {"0.storm", "1.storm", "2.storm"};
    pthread_t threads[3];
    storm_over = 0;
    for (int i = 0; i < 3; i++)
        MUST(pthread_create(&threads[i], NULL, worker, names[i]) == 0);
    for (int i = 0; i < 20; i++) {
        start(NULL);
        usleep(1000);
        stop(NULL);
    }
    storm_over = 1;
    for (int i = 0; i < 3; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
}

static const struct { const char *name; void (*run)(const char *); } steps[] = {
    {"load", load}, {"start", start}, {"refused", refused}, {"stop", stop}, {"all", all}, {"life", life},
    {"none", none}, {"senseless", senseless}, {"at_end", at_end}, {"leave", leave}, {"work", direct}, {"say", say},
    {"data", data}, {"constant", constant_data}, {"copy", copy}, {"copied", by_copies}, {"default", by_default},
    {"next", by_next}, {"handle", by_handle}, {"hold", hold}, {"write", write_held}, {"close", close_held},
    {"map", map_held}, {"unmap", unmap}, {"lazy", open_lazy}, {"now", open_now}, {"call", call_library},
    {"unload", close_library}, {"namespace", other_namespace}, {"cell", other_recorder},
    {"global_cell", other_global_recorder}, {"other_records", other_records}, {"told", told}, {"not_told", not_told},
    {"thread", make_thread}, {"in_thread", work_in_thread}, {"fork", forked}, {"vfork", vforked}, {"run", run},
    {"exec", exec_again}, {"exec_fails", exec_fails}, {"snapshot", snapshot}, {"same", same}, {"storm", storm},
    {"restarts", restarts},
};

int main(int argc, char **argv) {
    MUST(argc > 3);
    program = argv[0], recorder = argv[1], live = argv[2];
    for (int i = 3; i < argc; i++) {
        size_t length = strcspn(argv[i], "="), at = 0, count = sizeof steps / sizeof *steps;
        while (at < count && (strncmp(steps[at].name, argv[i], length) != 0 || steps[at].name[length]))
            at++;
        if (at == count)
            must_failed(argv[i], EINVAL);
        steps[at].run(argv[i][length] ? argv[i] + length + 1 : NULL);
    }
    return 0;
}
