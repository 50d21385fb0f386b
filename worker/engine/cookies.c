/* A jar is an array of cookies in the order in which a header names them: longer paths first, older
 * ones first among equals. So making a header, which happens for each request, is one walk; setting
 * a cookie, which is rarer, moves pointers. A handful of cookies is the rule, so there is no index.
 * Time is only compared with expiry; creation and use are counted, which clocks cannot confuse. */
#include "worker/engine/cookies.h"

#include "base/num.h"
#include "worker/engine/cookie_date.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#define FIRST_CAPACITY 4
#define MAX_AGE_S      (1ull << 53) /* beyond: for ever, and exact in a double */

struct cookie {
    double expires_s; /* HUGE_VAL: with the session */
    uint64_t used;    /* jar's count when it was set or last sent */
    uint16_t name_len;
    uint16_t value_len;
    uint16_t domain_len;
    uint16_t path_len;
    bool host_only;
    bool secure;
    char text[]; /* name, value, domain in lower case, path */
};

struct cookies {
    uint64_t uses;
    size_t count;
    size_t capacity;
    struct cookie *items[];
};

/* A cookie as a Set-Cookie header tells it; views into the header and the place. */
struct told {
    struct str name;
    struct str value;
    struct str domain; /* without a leading dot; empty: none was given */
    struct str path;   /* ptr NULL: none was given */
    bool host_only;
    bool secure;
    bool has_max_age;
    double expires_s;
};

static struct str name_of(const struct cookie *c)
{
    return (struct str){c->text, c->name_len};
}

static struct str value_of(const struct cookie *c)
{
    return (struct str){c->text + c->name_len, c->value_len};
}

static struct str domain_of(const struct cookie *c)
{
    return (struct str){c->text + c->name_len + c->value_len, c->domain_len};
}

static struct str path_of(const struct cookie *c)
{
    return (struct str){c->text + c->name_len + c->value_len + c->domain_len, c->path_len};
}

/* --- matching ------------------------------------------------------------------------------- */

static bool is_address(struct str host)
{
    for (size_t i = 0; i < host.len; i++) {
        if (host.ptr[i] == ':')
            return true;
    }
    for (size_t i = 0; i < host.len; i++) {
        if (host.ptr[i] != '.' && !isdigit((unsigned char)host.ptr[i]))
            return false;
    }
    return true;
}

static bool is_single_label(struct str host)
{
    return str_find(host, '.') == host.len;
}

/* RFC 6265 5.1.3 */
static bool domain_matches(struct str host, struct str domain)
{
    if (host.len <= domain.len)
        return str_eq_nocase(host, domain);
    struct str tail = str_sub(host, host.len - domain.len, host.len);
    return host.ptr[host.len - domain.len - 1] == '.' && str_eq_nocase(tail, domain) &&
           !is_address(host);
}

/* RFC 6265 5.1.4 */
static bool path_matches(struct str request, struct str cookie)
{
    if (request.len == 0)
        request = STR("/");
    return str_starts(request, cookie) &&
           (request.len == cookie.len || cookie.ptr[cookie.len - 1] == '/' ||
            request.ptr[cookie.len] == '/');
}

static struct str default_path(struct str request)
{
    size_t slash = request.len;
    while (slash > 0 && request.ptr[slash - 1] != '/')
        slash--;
    return slash > 1 && request.ptr[0] == '/' ? str_sub(request, 0, slash - 1) : STR("/");
}

/* --- reading a Set-Cookie header (RFC 6265 5.2) --------------------------------------------- */

static bool has_control(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if ((c < 0x20 && c != '\t') || c == 0x7F)
            return true;
    }
    return false;
}

/* "name=value" of the header or of an attribute. False: it has no '='. */
static bool split(struct str pair, struct str *ret_name, struct str *ret_value)
{
    size_t equals = str_find(pair, '=');
    *ret_name = str_trim(str_sub(pair, 0, equals));
    *ret_value = str_trim(str_sub(pair, equals + 1, pair.len));
    return equals < pair.len;
}

static void read_max_age(struct told *t, struct str value, double now_s)
{
    uint64_t seconds = MAX_AGE_S;
    bool negative = str_starts(value, STR("-"));
    if (num_parse_u64(str_sub(value, negative, value.len), MAX_AGE_S, &seconds) == -EINVAL)
        return;
    t->has_max_age = true;
    t->expires_s = -HUGE_VAL;
    if (!negative && seconds > 0)
        t->expires_s = now_s + (double)seconds;
}

/* The last attribute of a name counts; Max-Age counts more than Expires. */
static void read_attribute(struct told *t, struct str name, struct str value, double now_s)
{
    if (value.len > COOKIES_MAX_PATH_BYTES)
        return;
    if (str_eq_nocase(name, STR("max-age"))) {
        read_max_age(t, value, now_s);
    } else if (str_eq_nocase(name, STR("expires"))) {
        double expires_s;
        if (!t->has_max_age && cookie_date_parse(value, &expires_s))
            t->expires_s = expires_s;
    } else if (str_eq_nocase(name, STR("domain"))) {
        t->domain = str_sub(value, str_starts(value, STR(".")), value.len);
    } else if (str_eq_nocase(name, STR("path"))) {
        t->path = str_starts(value, STR("/")) ? value : (struct str){NULL, 0};
    } else if (str_eq_nocase(name, STR("secure"))) {
        t->secure = true;
    }
}

static bool read_header(struct told *t, struct str header, double now_s)
{
    struct str rest = header, part, name, value;
    *t = (struct told){.expires_s = HUGE_VAL};
    if (has_control(header) || !str_next(&rest, ';', &part))
        return false;
    if (!split(part, &t->name, &t->value)) { /* a value without a name */
        t->value = t->name;
        t->name = STR("");
    }
    if (t->name.len + t->value.len == 0 || t->name.len + t->value.len > COOKIES_MAX_BYTES)
        return false;
    while (str_next(&rest, ';', &part)) {
        (void)split(part, &name, &value); /* an attribute may have no value */
        read_attribute(t, name, value, now_s);
    }
    return true;
}

/* --- may it be kept? (RFC 6265 5.3) --------------------------------------------------------- */

static bool settle_domain(struct told *t, struct str host)
{
    bool own = str_eq_nocase(t->domain, host);
    t->host_only = t->domain.len == 0 || (own && (is_single_label(host) || is_address(host)));
    if (t->domain.len == 0)
        t->domain = host;
    else if (!own && (is_single_label(t->domain) || !domain_matches(host, t->domain)))
        return false;
    return t->domain.len <= COOKIES_MAX_PATH_BYTES;
}

/* Names that promise something which has to be true. */
static bool keeps_promise(const struct told *t, bool tls, bool domain_given)
{
    struct str name = t->name.len ? t->name : t->value; /* what a server would take for the name */
    bool host = str_starts_nocase(name, STR("__Host-"));
    if (!host && !str_starts_nocase(name, STR("__Secure-")))
        return true;
    return t->name.len && t->secure && tls &&
           (!host || (!domain_given && str_eq(t->path, STR("/"))));
}

/* Fill in what the place decides. False: the cookie is not taken. */
static bool settle(struct told *t, const struct cookie_place *from)
{
    bool domain_given = t->domain.len > 0;
    if (!settle_domain(t, from->host) || !keeps_promise(t, from->tls, domain_given))
        return false;
    if (!t->path.ptr)
        t->path = default_path(from->path);
    return t->path.len <= COOKIES_MAX_PATH_BYTES;
}

/* --- the jar -------------------------------------------------------------------------------- */

static struct cookie *cookie_new(const struct told *t)
{
    struct cookie *c = malloc(sizeof *c + t->name.len + t->value.len + t->domain.len + t->path.len);
    if (!c)
        return NULL;
    *c = (struct cookie){
        .expires_s = t->expires_s,
        .name_len = (uint16_t)t->name.len,
        .value_len = (uint16_t)t->value.len,
        .domain_len = (uint16_t)t->domain.len,
        .path_len = (uint16_t)t->path.len,
        .host_only = t->host_only,
        .secure = t->secure,
    };
    char *at = c->text;
    struct str parts[] = {t->name, t->value, t->domain, t->path};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].len)
            memcpy(at, parts[i].ptr, parts[i].len);
        at += parts[i].len;
    }
    char *domain = c->text + c->name_len + c->value_len;
    for (size_t i = 0; i < c->domain_len; i++)
        domain[i] = (char)tolower((unsigned char)domain[i]);
    return c;
}

/* The cookie that one with the same name, domain and path takes the place of; count: none. */
static size_t find(const struct cookies *jar, const struct told *t)
{
    size_t i = 0;
    for (; i < jar->count; i++) {
        const struct cookie *c = jar->items[i];
        if (c->host_only == t->host_only && str_eq(name_of(c), t->name) &&
            str_eq_nocase(domain_of(c), t->domain) && str_eq(path_of(c), t->path))
            break;
    }
    return i;
}

static void remove_at(struct cookies *jar, size_t at)
{
    free(jar->items[at]);
    jar->count--;
    memmove(jar->items + at, jar->items + at + 1, (jar->count - at) * sizeof *jar->items);
}

static void remove_expired(struct cookies *jar, double now_s)
{
    for (size_t i = jar->count; i-- > 0;) {
        if (jar->items[i]->expires_s <= now_s)
            remove_at(jar, i);
    }
}

/* Make room below the limits: first of the same domain, then of all, the one unused for longest. */
static void evict(struct cookies *jar, struct str domain)
{
    size_t of_domain = 0, oldest = 0, oldest_of_domain = SIZE_MAX;
    for (size_t i = 0; i < jar->count; i++) {
        const struct cookie *c = jar->items[i];
        if (c->used < jar->items[oldest]->used)
            oldest = i;
        if (!str_eq_nocase(domain_of(c), domain))
            continue;
        of_domain++;
        if (oldest_of_domain == SIZE_MAX || c->used < jar->items[oldest_of_domain]->used)
            oldest_of_domain = i;
    }
    if (of_domain >= COOKIES_MAX_PER_DOMAIN)
        remove_at(jar, oldest_of_domain);
    else if (jar->count >= COOKIES_MAX)
        remove_at(jar, oldest);
}

static int grow(struct cookies **jar_p)
{
    struct cookies *jar = *jar_p;
    size_t capacity = jar ? jar->capacity * 2 : FIRST_CAPACITY;
    if (jar && jar->count < jar->capacity)
        return 0;
    jar = realloc(jar, sizeof *jar + capacity * sizeof *jar->items);
    if (!jar)
        return -ENOMEM;
    if (!*jar_p)
        *jar = (struct cookies){0};
    jar->capacity = capacity;
    *jar_p = jar;
    return 0;
}

/* Behind those with as long a path: they are older. */
static void insert(struct cookies *jar, struct cookie *c)
{
    size_t at = jar->count;
    while (at > 0 && jar->items[at - 1]->path_len < c->path_len)
        at--;
    memmove(jar->items + at + 1, jar->items + at, (jar->count - at) * sizeof *jar->items);
    jar->items[at] = c;
    jar->count++;
}

static int add(struct cookies **jar, const struct told *t, double now_s)
{
    struct cookie *c = cookie_new(t);
    if (!c)
        return -ENOMEM;
    size_t at = *jar ? find(*jar, t) : 0;
    if (*jar && at < (*jar)->count) { /* the new one keeps the age, and so the place, of the old */
        free((*jar)->items[at]);
        (*jar)->items[at] = c;
        c->used = ++(*jar)->uses;
        return 0;
    }
    if (*jar) {
        remove_expired(*jar, now_s);
        evict(*jar, t->domain);
    }
    if (grow(jar) < 0) {
        free(c);
        return -ENOMEM;
    }
    c->used = ++(*jar)->uses;
    insert(*jar, c);
    return 0;
}

int cookies_set(struct cookies **jar, struct str set_cookie, const struct cookie_place *from,
                double now_s)
{
    struct told t;
    if (!read_header(&t, set_cookie, now_s) || !settle(&t, from))
        return 0;
    if (t.expires_s > now_s)
        return add(jar, &t, now_s);
    size_t at = *jar ? find(*jar, &t) : 0; /* already expired: that is how servers delete */
    if (*jar && at < (*jar)->count)
        remove_at(*jar, at);
    return 0;
}

static bool goes_to(const struct cookie *c, const struct cookie_place *to)
{
    struct str domain = domain_of(c);
    return (to->tls || !c->secure) && path_matches(to->path, path_of(c)) &&
           (c->host_only ? str_eq_nocase(to->host, domain) : domain_matches(to->host, domain));
}

static int append(struct buf *out, const struct cookie *c, bool first)
{
    int rc = first ? 0 : buf_add(out, STR("; "));
    if (rc == 0 && c->name_len)
        rc = buf_add(out, name_of(c));
    if (rc == 0 && c->name_len)
        rc = buf_add_byte(out, '=');
    return rc < 0 ? rc : buf_add(out, value_of(c));
}

int cookies_header(struct cookies *jar, const struct cookie_place *to, double now_s,
                   struct buf *out)
{
    size_t before = out->len;
    int rc = 0;
    if (!jar)
        return 0;
    remove_expired(jar, now_s);
    for (size_t i = 0; rc == 0 && i < jar->count; i++) {
        struct cookie *c = jar->items[i];
        if (!goes_to(c, to))
            continue;
        c->used = ++jar->uses;
        rc = append(out, c, out->len == before);
    }
    return rc;
}

bool cookies_value(const struct cookies *jar, struct str name, struct str *ret)
{
    const struct cookie *newest = NULL;
    for (size_t i = 0; jar && i < jar->count; i++) {
        const struct cookie *c = jar->items[i];
        if (str_eq(name, (struct str){c->text, c->name_len}) && (!newest || c->used > newest->used))
            newest = c;
    }
    if (newest)
        *ret = (struct str){newest->text + newest->name_len, newest->value_len};
    return newest != NULL;
}

size_t cookies_count(const struct cookies *jar)
{
    return jar ? jar->count : 0;
}

void cookies_free(struct cookies *jar)
{
    for (size_t i = 0; jar && i < jar->count; i++)
        free(jar->items[i]);
    free(jar);
}
