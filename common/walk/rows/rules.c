/* SPDX-License-Identifier: Apache-2.0 */
#include "common/walk/rows/rules.h"

#include <errno.h>
#include <stdlib.h>
#include "common/base/tables/hashtable.h"

struct rule_count {
	struct unwind_rule rule; /* key */
	uint32_t number, files;	 /* files: how many use it */
	uint32_t owner;
	UT_hash_handle hh;
};

static struct unwind_rule *rule_at(struct rules *r, uint32_t number)
{
	return (struct unwind_rule *)((char *)r->array.data + (size_t)number * TABLES_RULE_STRIDE);
}

int rules_init(struct rules *r, int fd)
{
	int error = array_init(&r->array, fd, (size_t)TABLES_RULE_STRIDE * TABLES_MAX_RULES);

	r->next = TABLES_RULE_GAP + 1;
	r->unused = calloc(TABLES_MAX_RULES, sizeof(*r->unused));
	r->by_number = calloc(TABLES_MAX_RULES, sizeof(*r->by_number));
	if (!error && (!r->unused || !r->by_number))
		error = -ENOMEM;
	if (!error)
		error = array_reach(&r->array, TABLES_RULE_STRIDE);
	if (!error)
		*rule_at(r, TABLES_RULE_GAP) = (struct unwind_rule){ .cfa = UNWIND_CFA_END,
								     .cfa_add = UNWIND_END_GAP };
	return error;
}

void rules_done(struct rules *r)
{
	struct rule_count *c, *next;

	HASH_ITER(hh, r->by_rule, c, next) {
		HASH_DEL(r->by_rule, c);
		free(c);
	}
	array_done(&r->array);
	free(r->unused);
	free(r->by_number);
}

/* Returns how many words below the CFA a register is saved; 8 if a short rule cannot express
 * that. */
static uint32_t words_below(int32_t off)
{
	return off < 0 && off > -64 && off % 8 == 0 ? (uint32_t)(-off / 8) : 8;
}

/* Returns the number that encodes the whole rule (TABLES_RULE_SHORT), or 0. */
static uint32_t short_number(const struct unwind_rule *r)
{
	uint32_t rbp = r->rbp == UNWIND_RBP_CFA ? words_below(r->rbp_off) : 0;

	if (r->cfa != UNWIND_CFA_REG || r->ra != UNWIND_RA_CFA ||
	    r->flags & (UNWIND_SIGNAL_FRAME | UNWIND_GUESSED | UNWIND_R12 | UNWIND_INTERRUPTS) ||
	    (r->cfa_reg != UNWIND_REG_RSP && r->cfa_reg != UNWIND_REG_RBP) ||
	    (r->rbp != UNWIND_RBP_CFA && r->rbp != UNWIND_RBP_SAME) || rbp > 7 || r->rbx > 7 ||
	    r->cfa_off < 0 || r->cfa_off > 255 * 8 || r->cfa_off % 8 || r->index)
		return 0;
	const uint32_t number = TABLES_RULE_SHORT |
				(r->cfa_reg == UNWIND_REG_RBP ? TABLES_RULE_SHORT_RBP : 0) |
				(uint32_t)r->cfa_off / 8 << 6 | rbp << 3 | r->rbx;

	return number == TABLES_RULE_STUB ? 0 : number;
}

/* Adds a rule that no file uses yet. */
static int rule_add(struct rules *r, const struct unwind_rule *rule, struct rule_count **ret)
{
	uint32_t number;

	if (r->unused_count)
		number = r->unused[r->unused_count - 1];
	else if (r->next < TABLES_MAX_RULES)
		number = r->next;
	else
		return RULES_FULL;
	int error = array_reach(&r->array, (number + 1) * (size_t)TABLES_RULE_STRIDE);
	if (error)
		return error;
	struct rule_count *c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	if (r->unused_count)
		r->unused_count--;
	else
		r->next++;
	c->rule = *rule;
	c->number = number;
	HASH_ADD(hh, r->by_rule, rule, sizeof(c->rule), c);
	r->by_number[number] = c;
	*rule_at(r, number) = *rule;
	r->count++;
	*ret = c;
	return 0;
}

uint32_t rules_free(const struct rules *r)
{
	return r->unused_count + (TABLES_MAX_RULES - r->next);
}

int rules_take(struct rules *r, const struct unwind_rule *rule, uint32_t owner,
	       uint32_t *ret_number, bool *ret_new)
{
	struct rule_count *c;
	uint32_t number = short_number(rule);

	*ret_new = false;

	if (number) {
		*ret_number = number;
		return 0;
	}
	HASH_FIND(hh, r->by_rule, rule, sizeof(*rule), c);
	const bool new = !c;
	int error = c ? 0 : rule_add(r, rule, &c);
	if (error)
		return error;
	if (new)
		c->owner = owner;
	*ret_new = new;
	c->files++;
	*ret_number = c->number;
	return 0;
}

bool rules_drop(struct rules *r, uint32_t number, uint32_t *ret_owner)
{
	struct rule_count *c = r->by_number[number];

	if (number == TABLES_RULE_GAP || !c || --c->files)
		return false;
	*ret_owner = c->owner;
	HASH_DEL(r->by_rule, c);
	r->by_number[number] = NULL;
	free(c);
	r->count--;
	return true;
}

void rules_reuse(struct rules *r, uint32_t number)
{
	r->unused[r->unused_count++] = number;
}
