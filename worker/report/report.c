#include "worker/report/report.h"

const char *users_source_name(enum users_source source)
{
    switch (source) {
    case USERS_SOURCE_NONE:
        return NULL;
    case USERS_SOURCE_LOCAL:
        return "local";
    case USERS_SOURCE_MASTER:
        return "master";
    case USERS_SOURCE_MASTER_WEB:
        return "master_web";
    case USERS_SOURCE_PROMETHEUS:
        return "prometheus";
    case USERS_SOURCE_PLAN:
        return "plan";
    }
    return NULL;
}
