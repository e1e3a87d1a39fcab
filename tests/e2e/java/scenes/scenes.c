/* SPDX-License-Identifier: Apache-2.0 */
/* The native methods of Native.java, which call Java again. */
#include <jni.h>
#include <stdlib.h>

static JNIEnv *sorting;
static jobject by;
static jmethodID compare;

JNIEXPORT jint JNICALL Java_scenes_Native_down(JNIEnv *env, jclass native, jint n)
{
	jmethodID up = (*env)->GetStaticMethodID(env, native, "up", "(I)I");

	return (*env)->CallStaticIntMethod(env, native, up, n) + 1;
}

static int by_java(const void *a, const void *b)
{
	return (*sorting)->CallIntMethod(sorting, by, compare, *(const jint *)a, *(const jint *)b);
}

JNIEXPORT void JNICALL Java_scenes_Native_sortBy(JNIEnv *env, jobject self, jintArray numbers)
{
	jsize n = (*env)->GetArrayLength(env, numbers);
	jint *all = (*env)->GetIntArrayElements(env, numbers, NULL);

	sorting = env;
	by = self;
	compare = (*env)->GetMethodID(env, (*env)->GetObjectClass(env, self), "compare", "(II)I");
	if (all)
		qsort(all, (size_t)n, sizeof(*all), by_java);
	if (all)
		(*env)->ReleaseIntArrayElements(env, numbers, all, 0);
}
