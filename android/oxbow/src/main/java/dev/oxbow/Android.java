package dev.oxbow;

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;

/** Calls of the Android framework, found by name: these classes are compiled without it, and run where it is older. */
final class Android {
    private Android() {}

    /** A service of the system; null: there is none, or this is not Android. */
    static Object service(Object context, String name) {
        return context == null ? null : call(context, "getSystemService", new Class<?>[] {String.class}, name);
    }

    /** What a public method gives; null: it gives nothing, there is no such method, or it failed. */
    static Object call(Object object, String name, Class<?>[] types, Object... arguments) {
        if (object == null) {
            return null;
        }
        try {
            return publicMethod(object.getClass(), name, types).invoke(object, arguments);
        } catch (ReflectiveOperationException | RuntimeException e) {
            return null;
        }
    }

    /** Of a class that is public itself: the system's own are subclasses that are not. */
    private static Method publicMethod(Class<?> type, String name, Class<?>[] types) throws NoSuchMethodException {
        for (Class<?> at = type; at != null; at = at.getSuperclass()) {
            if (Modifier.isPublic(at.getModifiers())) {
                return at.getMethod(name, types);
            }
        }
        throw new NoSuchMethodException(name);
    }
}
