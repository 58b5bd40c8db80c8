/* Stands for libnvidia-ml.so.1 as far as GPM goes: the names, structures and version numbers of nvml.h. Two GPUs. The
 * figures of FAKE_GPM (SM activity, occupancy, DRAM bandwidth, in percent) hold for the first, none for the second. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { char *shortName, *longName, *unit; } info_t;
typedef struct { unsigned metricId; unsigned nvmlReturn; double value; info_t metricInfo; } metric_t;
typedef struct { unsigned version, numMetrics; void *sample1, *sample2; metric_t metrics[210]; } get_t;
typedef struct { unsigned version, isSupportedDevice; } support_t;
typedef struct { long taken; } sample_t;

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4 };
static int gpus[2] = {0, 1};
static long taken;

static const char *figures(void) { const char *told = getenv("FAKE_GPM"); return told ? told : ""; }

unsigned nvmlInit_v2(void) { return SUCCESS; }

const char *nvmlErrorString(unsigned result) {
    return result == NO_PERMISSION ? "Insufficient Permissions" : result == NOT_SUPPORTED ? "Not Supported" : "Invalid Argument";
}

unsigned nvmlDeviceGetCount_v2(unsigned *count) { *count = strstr(figures(), "none") ? 0 : 2; return SUCCESS; }

unsigned nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = &gpus[index]; return SUCCESS; }

unsigned nvmlDeviceGetUUID(void *device, char *uuid, unsigned length) {
    snprintf(uuid, length, "%s", *(int *)device ? "GPU-other" : "GPU-11111111-2222-3333-4444-555555555555");
    return SUCCESS;
}

unsigned nvmlGpmQueryDeviceSupport(void *device, support_t *support) {
    if (support->version != 1) return INVALID_ARGUMENT;
    support->isSupportedDevice = strstr(figures(), "ampere") == NULL;
    return SUCCESS;
}

unsigned nvmlGpmSampleAlloc(void **sample) { *sample = calloc(1, sizeof(sample_t)); return SUCCESS; }

unsigned nvmlGpmSampleGet(void *device, void *sample) {
    if (strstr(figures(), "forbidden")) return NO_PERMISSION;
    ((sample_t *)sample)->taken = ++taken;
    return SUCCESS;
}

unsigned nvmlGpmMetricsGet(get_t *get) {
    double known[3] = {0, 0, 0};
    if (get->version != 1 || ((sample_t *)get->sample1)->taken >= ((sample_t *)get->sample2)->taken) return INVALID_ARGUMENT;
    sscanf(figures(), "%lf,%lf,%lf", &known[0], &known[1], &known[2]);
    for (unsigned i = 0; i < get->numMetrics; i++) {
        metric_t *one = &get->metrics[i];
        int which = one->metricId == 2 ? 0 : one->metricId == 3 ? 1 : one->metricId == 10 ? 2 : -1;
        one->nvmlReturn = which < 0 ? NOT_SUPPORTED : SUCCESS;
        one->value = which < 0 ? 0 : known[which];
    }
    return SUCCESS;
}
