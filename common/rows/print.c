/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/print.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const reg_names[UNWIND_REG_MAX] = {
	"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
	"r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15",
};

static const char *reg_name(unsigned reg)
{
	return reg < UNWIND_REG_MAX ? reg_names[reg] : "?";
}

void print_rule(const struct unwind_rule *rule, bool registers, char ret[PRINT_RULE_SIZE])
{
	char cfa[96], at[48], rbp[32], ra[32], rbx[24] = "";

	switch (rule->cfa) {
	case UNWIND_CFA_REG:
		if (rule->index)
			snprintf(cfa, sizeof(cfa), "%s+%u*%s%+" PRId32, reg_name(rule->cfa_reg),
				 1u << (rule->index - 1), reg_name(rule->index_reg), rule->cfa_off);
		else
			snprintf(cfa, sizeof(cfa), "%s%+" PRId32, reg_name(rule->cfa_reg),
				 rule->cfa_off);
		break;
	case UNWIND_CFA_DEREF:
	case UNWIND_CFA_SUM:
	case UNWIND_CFA_DEREF_TWICE:
		if (rule->index)
			snprintf(at, sizeof(at), "*(%s+%u*%s%+" PRId32 ")", reg_name(rule->cfa_reg),
				 1u << (rule->index - 1), reg_name(rule->index_reg), rule->cfa_off);
		else
			snprintf(at, sizeof(at), "*(%s%+" PRId32 ")", reg_name(rule->cfa_reg),
				 rule->cfa_off);
		if (rule->cfa == UNWIND_CFA_DEREF)
			snprintf(cfa, sizeof(cfa), "%s%+" PRId32, at, rule->cfa_add);
		else if (rule->cfa == UNWIND_CFA_SUM)
			snprintf(cfa, sizeof(cfa), "%s+%s%+" PRId32, reg_name(rule->cfa_reg), at,
				 rule->cfa_add);
		else
			snprintf(cfa, sizeof(cfa), "*(%s%+d)%+" PRId32, at, rule->cfa_mid,
				 rule->cfa_add);
		break;
	case UNWIND_CFA_NEST:
		snprintf(cfa, sizeof(cfa), "nest(%s%+" PRId32 ",align(%s,%d)%+" PRId32 ",rsp%+d)",
			 reg_name(rule->cfa_reg), rule->cfa_off, reg_name(rule->cfa_reg),
			 1 << rule->index_reg, -rule->cfa_add, rule->cfa_mid);
		break;
	case UNWIND_CFA_PLT:
		snprintf(cfa, sizeof(cfa), "plt");
		break;
	case UNWIND_CFA_GO_SWITCH:
		snprintf(cfa, sizeof(cfa), "go-switch(%s%+" PRId32 ",%u,%u,%u)%+" PRId32,
			 rule->flags & UNWIND_TLS_WORD ? "*" : "", rule->cfa_add,
			 rule->rbp_reg * 8u, rule->cfa_reg * 8u, rule->ra_reg * 8u, rule->cfa_off);
		break;
	case UNWIND_CFA_GO_DEPTH:
		snprintf(cfa, sizeof(cfa), "go-depth(%u,%" PRId32 ")%+" PRId32, rule->cfa_reg * 8u,
			 rule->cfa_add, rule->cfa_off);
		break;
	default:
		snprintf(ret, PRINT_RULE_SIZE, "end undefined undefined%s",
			 rule->flags & UNWIND_DERIVED ? " derived" : "");
		return;
	}
	switch (rule->rbp) {
	case UNWIND_RBP_CFA:
		snprintf(rbp, sizeof(rbp), "cfa%+" PRId32, rule->rbp_off);
		break;
	case UNWIND_RBP_DEREF_REG:
		snprintf(rbp, sizeof(rbp), "%s%+" PRId32, reg_name(rule->rbp_reg), rule->rbp_off);
		break;
	case UNWIND_RBP_UNDEFINED:
		snprintf(rbp, sizeof(rbp), "undefined");
		break;
	default:
		snprintf(rbp, sizeof(rbp), "same");
		break;
	}
	switch (rule->ra) {
	case UNWIND_RA_UNDEFINED:
		snprintf(ra, sizeof(ra), "undefined");
		break;
	case UNWIND_RA_REG:
		snprintf(ra, sizeof(ra), "%s", reg_name(rule->ra_reg));
		break;
	case UNWIND_RA_CFA_OFF:
		if (rule->cfa == UNWIND_CFA_GO_SWITCH)
			snprintf(ra, sizeof(ra), "g%+" PRId32, rule->rbp_off);
		else
			snprintf(ra, sizeof(ra), "cfa%+" PRId32, rule->cfa_add);
		break;
	default:
		/* In a signal frame, the return address is the interrupted pc, in the kernel's
		 * ucontext. */
		snprintf(ra, sizeof(ra), "%s",
			 rule->flags & UNWIND_SIGNAL_FRAME ? "rsp+168" : "cfa-8");
		break;
	}
	if (registers && rule->rbx)
		snprintf(rbx, sizeof(rbx), " %s=cfa-%u", rule->flags & UNWIND_R12 ? "r12" : "rbx",
			 rule->rbx * 8u);
	snprintf(ret, PRINT_RULE_SIZE, "%s %s %s%s%s%s%s", cfa, rbp, ra,
		 rule->flags & UNWIND_SIGNAL_FRAME ? " signal" : "",
		 rule->flags & UNWIND_INTERRUPTS ? " interrupts" : "",
		 rule->flags & UNWIND_DERIVED ? " derived" : "", rbx);
}

int print_rows(FILE *out, const struct rows *r, bool registers)
{
	/* Format each rule once: there are many more rows than rules. */
	char(*text)[PRINT_RULE_SIZE] = malloc((size_t)r->rules.n * sizeof(*text));
	struct rows_cursor c;
	struct unwind_row_wire row;

	if (!text && r->rules.n)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->rules.n; i++)
		print_rule(&r->rules.rule[i], registers, text[i]);
	rows_cursor_init(&c, r);

	/* A gap after an inexpressible rule has the same text; print it only once. */
	const char *last = "";

	while (rows_next(&c, &row)) {
		if (strcmp(text[row.rule], last) == 0)
			continue;
		last = text[row.rule];
		fprintf(out, "0x%" PRIx64 " %s\n", rows_address(r, row.offset), last);
	}
	/* The rows have no `end` row at the end of the span. Print one, so that a reader knows
	 * where the last function ends. */
	if (r->count && strncmp(last, "end", 3) != 0)
		fprintf(out, "0x%" PRIx64 " %s\n", rows_address(r, (uint32_t)r->span),
			text[ROWS_RULE_GAP]);
	free(text);
	return ferror(out) ? -EIO : 0;
}

void print_stats(FILE *out, const char *name, const struct print_stats *s)
{
	uint64_t skipped = 0;

	for (unsigned i = 0; i < ROWS_SKIP_COUNT; i++)
		skipped += s->skipped[i];
	fprintf(out, "%s:", name);
	if (s->files)
		fprintf(out, " files=%" PRIu64, s->files);
	fprintf(out,
		" rows=%" PRIu64 " rules=%" PRIu64 " bytes=%" PRIu64 " fdes=%" PRIu64
		" cies=%" PRIu64,
		s->rows, s->rules, s->rows * 4 + s->rules * sizeof(struct unwind_rule), s->fdes,
		s->cies);
	fprintf(out, " time_us=%" PRIu64 " memory_kib=%" PRIu64 " skipped=%" PRIu64,
		s->time_ns / 1000, s->memory / 1024, skipped);
	for (unsigned i = 0; i < ROWS_SKIP_COUNT; i++) {
		if (s->skipped[i])
			fprintf(out, " %s=%" PRIu64, rows_skip_word(i), s->skipped[i]);
	}
	fputc('\n', out);
}
