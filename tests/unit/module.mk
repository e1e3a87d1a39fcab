include $(filter-out tests/unit/module.mk,$(wildcard tests/unit/*.mk))
