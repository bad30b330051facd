/* Stands in for NVIDIA's management library: two devices, whose second one supports little. */
#include <stddef.h>
#include <string.h>

typedef int Return; /* 0 success, 1 uninitialized, 2 invalid argument, 3 not supported, 7 insufficient size */
typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory2;
typedef struct { unsigned pid; unsigned long long used; unsigned instance, compute; } Process;
typedef struct { unsigned pid; unsigned long long stamp; unsigned sm, mem, enc, dec; } Share;

static int started;
static unsigned long long energy = 5000;
static char devices[2];

static int second(void *device) { return device == &devices[1]; }

Return nvmlInit_v2(void) { started = 1; return 0; }
Return nvmlShutdown(void) { started = 0; return 0; }
const char *nvmlErrorString(Return code) { (void)code; return "stub"; }
Return nvmlDeviceGetCount_v2(unsigned *count) { if (!started) return 1; *count = 2; return 0; }
Return nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    if (!started) return 1;
    if (index > 1) return 2;
    *device = &devices[index];
    return 0;
}
Return nvmlDeviceGetName(void *device, char *name, unsigned length) {
    (void)length;
    strcpy(name, second(device) ? "Stub B" : "Stub A");
    return 0;
}
Return nvmlDeviceGetUUID(void *device, char *uuid, unsigned length) {
    (void)length;
    strcpy(uuid, second(device) ? "GPU-b" : "GPU-a");
    return 0;
}
Return nvmlDeviceGetUtilizationRates(void *device, Utilization *rates) {
    rates->gpu = second(device) ? 5 : 83;
    rates->memory = 21;
    return 0;
}
Return nvmlDeviceGetMemoryInfo_v2(void *device, Memory2 *memory) {
    if (second(device)) return 3;
    if (memory->version != (sizeof *memory | 2u << 24)) return 2;
    memory->total = 80ull << 30;
    memory->used = 3ull << 30;
    memory->free = memory->total - memory->used;
    memory->reserved = 0;
    return 0;
}
Return nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) { if (second(device)) return 3; *milliwatts = 312500; return 0; }
Return nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules) {
    if (second(device)) return 3;
    *millijoules = energy;
    energy += 250;
    return 0;
}
Return nvmlDeviceGetTemperature(void *device, int sensor, unsigned *degrees) { (void)sensor; if (second(device)) return 3; *degrees = 61; return 0; }
Return nvmlDeviceGetClockInfo(void *device, int clock, unsigned *megahertz) { (void)clock; if (second(device)) return 3; *megahertz = 1410; return 0; }
Return nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, Process *processes) {
    if (second(device)) { *count = 0; return 0; }
    if (*count < 2 || !processes) { *count = 2; return 7; }
    *count = 2;
    processes[0] = (Process){4711, 2ull << 30, ~0u, ~0u};
    processes[1] = (Process){4712, ~0ull, ~0u, ~0u};
    return 0;
}
Return nvmlDeviceGetProcessUtilization(void *device, Share *shares, unsigned *count, unsigned long long since) {
    if (second(device)) return 3;
    if (since >= 200) { *count = 0; return 6; }
    if (*count < 3 || !shares) { *count = 3; return 7; }
    *count = 3;
    shares[0] = (Share){4711, 100, 10, 1, 0, 0};
    shares[1] = (Share){4711, 200, 77, 33, 1, 2};
    shares[2] = (Share){4712, 150, 6, 2, 0, 0};
    return 0;
}
