/* The style of report.html, apart from its charts'. Constant data. */
#ifndef CICADA_WORKER_OUTPUT_HTML_STYLE_H
#define CICADA_WORKER_OUTPUT_HTML_STYLE_H

extern const char html_css[];

#endif
