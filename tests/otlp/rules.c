/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/otlp/rules.h"

#include "tests/fuzz/must.h"
#include "tests/otlp/profiles.pb-c.h"

/* The number of references to each entry of a table. */
struct used {
	uint8_t *strings, *attributes, *mappings, *functions, *locations, *stacks, *links;
	const Public__ProfilesDictionary *d;
};

static void use(uint8_t *used, size_t n, int32_t i)
{
	must(i >= 0 && (size_t)i < n);
	used[i] = 1;
}

static void use_all(uint8_t *used, size_t n, const int32_t *list, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		must(list[i] != 0);
		use(used, n, list[i]);
	}
}

/* No key twice. */
static void check_keys(const struct used *u, const int32_t *list, size_t len)
{
	for (size_t i = 0; i < len; i++)
		for (size_t k = 0; k < i; k++)
			must(u->d->attribute_table[list[i]]->key_strindex !=
			     u->d->attribute_table[list[k]]->key_strindex);
}

static void use_attributes(const struct used *u, const int32_t *list, size_t len)
{
	use_all(u->attributes, u->d->n_attribute_table, list, len);
	check_keys(u, list, len);
}

static void use_string(const struct used *u, int32_t i)
{
	use(u->strings, u->d->n_string_table, i);
}

static void check_mapping(const struct used *u, const Public__Mapping *m)
{
	must(m->memory_start < m->memory_limit || (!m->memory_start && !m->memory_limit));
	use_string(u, m->filename_strindex);
	use_attributes(u, m->attribute_indices, m->n_attribute_indices);
}

static void check_location(const struct used *u, const Public__Location *l)
{
	use(u->mappings, u->d->n_mapping_table, l->mapping_index);
	use_attributes(u, l->attribute_indices, l->n_attribute_indices);
	must(l->n_attribute_indices == 1 && (l->n_lines || l->mapping_index));
	for (size_t i = 0; i < l->n_lines; i++) {
		must(l->lines[i]->function_index > 0 && l->lines[i]->line >= 0);
		use(u->functions, u->d->n_function_table, l->lines[i]->function_index);
	}
}

static void check_function(const struct used *u, const Public__Function *f)
{
	must(f->name_strindex > 0 && f->start_line >= 0);
	use_string(u, f->name_strindex);
	use_string(u, f->system_name_strindex);
	use_string(u, f->filename_strindex);
}

static void check_tables(const struct used *u)
{
	const Public__ProfilesDictionary *d = u->d;

	must(d->n_string_table && !*d->string_table[0] && d->n_link_table);
	must(d->n_attribute_table && d->n_mapping_table && d->n_function_table &&
	     d->n_location_table && d->n_stack_table);
	must(!public__link__get_packed_size(d->link_table[0]) &&
	     !public__key_value_and_unit__get_packed_size(d->attribute_table[0]) &&
	     !public__mapping__get_packed_size(d->mapping_table[0]) &&
	     !public__function__get_packed_size(d->function_table[0]) &&
	     !public__location__get_packed_size(d->location_table[0]) &&
	     !public__stack__get_packed_size(d->stack_table[0]));
	for (size_t i = 1; i < d->n_attribute_table; i++) {
		must(d->attribute_table[i]->key_strindex > 0 && d->attribute_table[i]->value);
		use_string(u, d->attribute_table[i]->key_strindex);
	}
	for (size_t i = 1; i < d->n_link_table; i++)
		must(d->link_table[i]->trace_id.len == 16 && d->link_table[i]->span_id.len == 8);
	for (size_t i = 1; i < d->n_mapping_table; i++)
		check_mapping(u, d->mapping_table[i]);
	for (size_t i = 1; i < d->n_function_table; i++)
		check_function(u, d->function_table[i]);
	for (size_t i = 1; i < d->n_location_table; i++)
		check_location(u, d->location_table[i]);
	for (size_t i = 1; i < d->n_stack_table; i++)
		use_all(u->locations, d->n_location_table, d->stack_table[i]->location_indices,
			d->stack_table[i]->n_location_indices);
}

static void check_type(const struct used *u, const Public__ValueType *t)
{
	must(t && t->type_strindex >= 0 && t->unit_strindex >= 0);
	use_string(u, t->type_strindex);
	use_string(u, t->unit_strindex);
}

static bool same_identity(const Public__Sample *a, const Public__Sample *b)
{
	return a->stack_index == b->stack_index && a->link_index == b->link_index &&
	       a->n_attribute_indices == b->n_attribute_indices &&
	       (!a->n_attribute_indices ||
		!memcmp(a->attribute_indices, b->attribute_indices,
			a->n_attribute_indices * sizeof(*a->attribute_indices)));
}

static uint64_t check_profile(const struct used *u, const Public__Profile *p)
{
	const uint64_t end = p->time_unix_nano + p->duration_nano;
	uint64_t samples = 0;

	must(p->n_samples && p->duration_nano && end > p->time_unix_nano);
	check_type(u, p->sample_type);
	check_type(u, p->period_type);
	for (size_t i = 0; i < p->n_samples; i++) {
		const Public__Sample *s = p->samples[i];

		use(u->stacks, u->d->n_stack_table, s->stack_index);
		use_attributes(u, s->attribute_indices, s->n_attribute_indices);
		use(u->links, u->d->n_link_table, s->link_index);
		/* All samples have the same shape: timestamps, one value, or as many of both. */
		must(!s->n_values == !p->samples[0]->n_values &&
		     !s->n_timestamps_unix_nano == !p->samples[0]->n_timestamps_unix_nano);
		must(s->n_timestamps_unix_nano
			     ? !s->n_values || s->n_values == s->n_timestamps_unix_nano
			     : s->n_values == 1);
		for (size_t k = 0; k < s->n_timestamps_unix_nano; k++)
			must(s->timestamps_unix_nano[k] >= p->time_unix_nano &&
			     s->timestamps_unix_nano[k] < end);
		for (size_t k = 0; k < i; k++)
			must(!same_identity(s, p->samples[k]));
		samples += s->n_timestamps_unix_nano;
	}
	return samples;
}

static void check_resource(const Public__Resource *r)
{
	must(r && r->n_attributes);
	for (size_t i = 0; i < r->n_attributes; i++) {
		const Public__KeyValue *a = r->attributes[i];

		must(*a->key && !a->key_strindex && a->value);
		must(a->value->value_case == PUBLIC__ANY_VALUE__VALUE_INT_VALUE ||
		     a->value->value_case == PUBLIC__ANY_VALUE__VALUE_STRING_VALUE ||
		     (a->value->value_case == PUBLIC__ANY_VALUE__VALUE_ARRAY_VALUE &&
		      strcmp(a->key, "process.command_args") == 0));
		for (size_t k = 0; k < i; k++)
			must(strcmp(a->key, r->attributes[k]->key) != 0);
	}
}

static uint8_t *zeros(size_t n)
{
	uint8_t *p = calloc(n + 1, 1);

	must(p != NULL);
	p[0] = 1;
	return p;
}

/* All entries are used. Frees. */
static void conclude(uint8_t *used, size_t n)
{
	for (size_t i = 0; i < n; i++)
		must(used[i]);
	free(used);
}

static uint64_t check_data(const Public__ProfilesData *data)
{
	const Public__ProfilesDictionary *d = data->dictionary;
	uint64_t samples = 0;

	must(d && data->n_resource_profiles);
	const struct used u = { .d = d,
				.strings = zeros(d->n_string_table),
				.attributes = zeros(d->n_attribute_table),
				.mappings = zeros(d->n_mapping_table),
				.functions = zeros(d->n_function_table),
				.locations = zeros(d->n_location_table),
				.stacks = zeros(d->n_stack_table),
				.links = zeros(d->n_link_table) };

	check_tables(&u);
	for (size_t i = 0; i < data->n_resource_profiles; i++) {
		const Public__ResourceProfiles *r = data->resource_profiles[i];

		check_resource(r->resource);
		must(r->n_scope_profiles == 1 && r->scope_profiles[0]->scope &&
		     r->scope_profiles[0]->n_profiles);
		for (size_t k = 0; k < r->scope_profiles[0]->n_profiles; k++)
			samples += check_profile(&u, r->scope_profiles[0]->profiles[k]);
	}
	conclude(u.strings, d->n_string_table);
	conclude(u.attributes, d->n_attribute_table);
	conclude(u.mappings, d->n_mapping_table);
	conclude(u.functions, d->n_function_table);
	conclude(u.locations, d->n_location_table);
	conclude(u.stacks, d->n_stack_table);
	conclude(u.links, d->n_link_table);
	return samples;
}

uint64_t otlp_rules_check(struct span plain)
{
	Public__ProfilesData *data = public__profiles_data__unpack(NULL, plain.len, plain.data);

	must(data != NULL && !data->base.n_unknown_fields);
	const uint64_t samples = check_data(data);

	/* Decoding lost nothing, so there are no unknown fields. */
	must(public__profiles_data__get_packed_size(data) == plain.len);
	public__profiles_data__free_unpacked(data, NULL);
	return samples;
}
