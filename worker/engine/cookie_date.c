/* The text is cut into tokens, and each token is the first of time, day, month and year that it can
 * be and that is still missing. Order, punctuation and whatever else there is do not matter. */
#include "worker/engine/cookie_date.h"

struct date {
    bool has_time, has_day, has_month, has_year;
    int hour, minute, second, day, month, year;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_delimiter(char byte)
{
    unsigned char c = (unsigned char)byte;
    return c == '\t' || (c >= 0x20 && c <= 0x2F) || (c >= 0x3B && c <= 0x40) ||
           (c >= 0x5B && c <= 0x60) || (c >= 0x7B && c <= 0x7E);
}

/* Take a number of min to max digits off the front of *text, with no further digit behind it. */
static bool take_number(struct str *text, size_t min, size_t max, int *ret)
{
    size_t n = 0;
    int value = 0;
    while (n < text->len && n < max && is_digit(text->ptr[n]))
        value = value * 10 + (text->ptr[n++] - '0');
    if (n < min || (n < text->len && is_digit(text->ptr[n])))
        return false;
    *text = str_sub(*text, n, text->len);
    *ret = value;
    return true;
}

static bool take_colon(struct str *text)
{
    if (!str_starts(*text, STR(":")))
        return false;
    *text = str_sub(*text, 1, text->len);
    return true;
}

static bool read_time(struct str token, struct date *d)
{
    int hour, minute, second;
    if (!take_number(&token, 1, 2, &hour) || !take_colon(&token) ||
        !take_number(&token, 1, 2, &minute) || !take_colon(&token) ||
        !take_number(&token, 1, 2, &second))
        return false;
    d->hour = hour;
    d->minute = minute;
    d->second = second;
    return true;
}

static bool read_month(struct str token, int *ret)
{
    static const char names[][4] = {"jan", "feb", "mar", "apr", "may", "jun",
                                    "jul", "aug", "sep", "oct", "nov", "dec"};
    for (int i = 0; i < 12; i++) {
        if (str_starts_nocase(token, str_of(names[i]))) {
            *ret = i + 1;
            return true;
        }
    }
    return false;
}

static void read_token(struct str token, struct date *d)
{
    struct str rest = token;
    if (!d->has_time && read_time(token, d))
        d->has_time = true;
    else if (!d->has_day && take_number(&rest, 1, 2, &d->day))
        d->has_day = true;
    else if (!d->has_month && read_month(token, &d->month))
        d->has_month = true;
    else if (!d->has_year && take_number(&rest, 2, 4, &d->year))
        d->has_year = true;
}

static int days_in_month(int month, int year)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

/* Days from 1970-01-01 to a date of the Gregorian calendar, counted in years that begin in March:
 * the leap day is then the last one, and a month's beginning is a straight line. */
static long days_since_1970(int year, int month, int day)
{
    long y = month > 2 ? year : year - 1;
    long m = month > 2 ? month - 3 : month + 9;
    return y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719468;
}

bool cookie_date_parse(struct str text, double *ret_s)
{
    struct date d = {0};
    for (size_t i = 0; i < text.len;) {
        size_t begin = i;
        while (i < text.len && !is_delimiter(text.ptr[i]))
            i++;
        if (i > begin)
            read_token(str_sub(text, begin, i), &d);
        else
            i++;
    }
    if (!d.has_time || !d.has_day || !d.has_month || !d.has_year)
        return false;
    if (d.year >= 70 && d.year <= 99)
        d.year += 1900;
    else if (d.year <= 69)
        d.year += 2000;
    if (d.year < 1601 || d.day < 1 || d.day > days_in_month(d.month, d.year) || d.hour > 23 ||
        d.minute > 59 || d.second > 59)
        return false;
    *ret_s = (double)days_since_1970(d.year, d.month, d.day) * 86400.0 + d.hour * 3600 +
             d.minute * 60 + d.second;
    return true;
}
