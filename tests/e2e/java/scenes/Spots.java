// SPDX-License-Identifier: Apache-2.0
package scenes;

/** A place for each scene, whose frame identifies it. */
final class Spots {
    private Spots() {
    }

    static void none() {
        Mark.here("none");
    }

    static void adapted_handle() {
        Mark.here("adapted_handle");
    }

    static void after_collection() {
        Mark.here("after_collection");
    }

    static void after_park() {
        Mark.here("after_park");
    }

    static void after_wait() {
        Mark.here("after_wait");
    }

    static void allocation_beside() {
        Mark.here("allocation_beside");
    }

    static void alone() {
        Mark.here("alone");
    }

    static void bridge_method() {
        Mark.here("bridge_method");
    }

    static void capturing_lambda() {
        Mark.here("capturing_lambda");
    }

    static void class_for_name() {
        Mark.here("class_for_name");
    }

    static void class_loader() {
        Mark.here("class_loader");
    }

    static void close_resource() {
        Mark.here("close_resource");
    }

    static void compute_if_absent() {
        Mark.here("compute_if_absent");
    }

    static void constructor() {
        Mark.here("constructor");
    }

    static void deep_recursion() {
        Mark.here("deep_recursion");
    }

    static void default_method() {
        Mark.here("default_method");
    }

    static void deoptimization() {
        Mark.here("deoptimization");
    }

    static void executor() {
        Mark.here("executor");
    }

    static void finally_block() {
        Mark.here("finally_block");
    }

    static void finally_of_thrown() {
        Mark.here("finally_of_thrown");
    }

    static void flat_map() {
        Mark.here("flat_map");
    }

    static void for_each() {
        Mark.here("for_each");
    }

    static void fork_join() {
        Mark.here("fork_join");
    }

    static void future() {
        Mark.here("future");
    }

    static void handler() {
        Mark.here("handler");
    }

    static void hash_code() {
        Mark.here("hash_code");
    }

    static void huge_method() {
        Mark.here("huge_method");
    }

    static void implicit_exceptions() {
        Mark.here("implicit_exceptions");
    }

    static void inlined() {
        Mark.here("inlined");
    }

    static void inner_class() {
        Mark.here("inner_class");
    }

    static void interface_call() {
        Mark.here("interface_call");
    }

    static void iterator() {
        Mark.here("iterator");
    }

    static void jni() {
        Mark.here("jni");
    }

    static void jni_callback() {
        Mark.here("jni_callback");
    }

    static void lambda() {
        Mark.here("lambda");
    }

    static void lock() {
        Mark.here("lock");
    }

    static void loop() {
        Mark.here("loop");
    }

    static void many_arguments() {
        Mark.here("many_arguments");
    }

    static void method_handle() {
        Mark.here("method_handle");
    }

    static void method_reference() {
        Mark.here("method_reference");
    }

    static void mutual_recursion() {
        Mark.here("mutual_recursion");
    }

    static void nested_lambdas() {
        Mark.here("nested_lambdas");
    }

    static void privileged() {
        Mark.here("privileged");
    }

    static void proxy() {
        Mark.here("proxy");
    }

    static void record_constructor() {
        Mark.here("record_constructor");
    }

    static void record_hash() {
        Mark.here("record_hash");
    }

    static void recursion() {
        Mark.here("recursion");
    }

    static void reflection() {
        Mark.here("reflection");
    }

    static void serialization() {
        Mark.here("serialization");
    }

    static void sort_comparator() {
        Mark.here("sort_comparator");
    }

    static void stack_overflow() {
        Mark.here("stack_overflow");
    }

    static void static_call() {
        Mark.here("static_call");
    }

    static void static_initializer() {
        Mark.here("static_initializer");
    }

    static void stream() {
        Mark.here("stream");
    }

    static void string_switch() {
        Mark.here("string_switch");
    }

    static void synchronized_block() {
        Mark.here("synchronized_block");
    }

    static void synchronized_method() {
        Mark.here("synchronized_method");
    }

    static void thread() {
        Mark.here("thread");
    }

    static void thread_local() {
        Mark.here("thread_local");
    }

    static void to_string() {
        Mark.here("to_string");
    }

    static void tree_map() {
        Mark.here("tree_map");
    }

    static void upcall() {
        Mark.here("upcall");
    }

    static void variable_arguments() {
        Mark.here("variable_arguments");
    }

    static void virtual_call() {
        Mark.here("virtual_call");
    }

    static void virtual_deep() {
        Mark.here("virtual_deep");
    }

    static void virtual_moved() {
        Mark.here("virtual_moved");
    }

    static void virtual_pinned() {
        Mark.here("virtual_pinned");
    }

    static void virtual_thread() {
        Mark.here("virtual_thread");
    }

    static void virtual_twice() {
        Mark.here("virtual_twice");
    }

    static void virtual_yield() {
        Mark.here("virtual_yield");
    }

    static void wide_frame() {
        Mark.here("wide_frame");
    }
}
