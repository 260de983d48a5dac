package dev.oxbow;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.fail;

import java.io.File;
import java.lang.annotation.Annotation;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.Test;

/** Exceptions by kind, from Java and from native code. */
public class KindTest extends Fixture {
    private interface Call {
        void run() throws Exception;
    }

    /** Of exactly this class. */
    private static void kind(Class<?> expected, Call call) throws Exception {
        try {
            call.run();
        } catch (OxbowException e) {
            assertSame(e.getMessage(), expected, e.getClass());
            return;
        }
        fail("expected " + expected);
    }

    @Test
    public void whatAProgramMayCatchIsAClass() throws Exception {
        kind(ModelFileException.class, () -> Model.open(new File("/no/such/model.oxb")).close());
        kind(ModelFileException.class, () -> open("prompt.txt").close());
        try (Model model = demo();
                Session session = Session.create(model)) {
            kind(MisuseException.class, () -> session.feed(-1));
            kind(MisuseException.class, () -> session.readLogits(ByteBuffer.allocate(4)));
            kind(MisuseException.class, () -> Session.create(model, new SessionOptions().arena(DirectBuffers.allocate(64))));
            kind(SavedStateException.class, () -> session.load(new byte[1000]));
            session.cancel();
            kind(OxbowException.class, () -> session.feed(1));
            session.close();
            kind(MisuseException.class, () -> session.feed(1));
        }
        try (Model model = open("gpt2.oxb");
                Session session = Session.create(model)) {
            kind(OxbowException.class, () -> session.feed(new int[(int) model.getCapacity() + 1]));
        }
    }

    /** The kind of every code; one that only a newer library knows has the kind of its neighbours. */
    @Test
    public void everyCodeHasAKind() throws IllegalAccessException {
        Map<Integer, Class<?>> kinds = new LinkedHashMap<>();
        for (int code : new int[] {10, 11, 12, 17, 100, 101, 105}) {
            kinds.put(code, MisuseException.class);
        }
        for (int code : new int[] {20, 21, 22, 29}) {
            kinds.put(code, ModelFileException.class);
        }
        for (int code : new int[] {30, 31, 35}) {
            kinds.put(code, SavedStateException.class);
        }
        for (int code : new int[] {41, 42, 43}) {
            kinds.put(code, DeviceException.class);
        }
        for (int code : new int[] {13, 14, 15, 16, 40, 50, 60, 1000}) {
            kinds.put(code, OxbowException.class);
        }
        for (Map.Entry<Integer, Class<?>> kind : kinds.entrySet()) {
            OxbowException made = OxbowException.of(kind.getKey(), "words");
            assertSame("code " + kind.getKey(), kind.getValue(), made.getClass());
            assertEquals((int) kind.getKey(), made.getCode());
        }
        for (Field field : OxbowException.class.getFields()) {
            if (Modifier.isStatic(field.getModifiers())) {
                assertNotNull(field.getName(), kinds.get(field.getInt(null)));
            }
        }
    }

    /** They are there for compilers; where their classes are not, nothing misses them. */
    @Test
    public void annotationsNeedNoLibrary() throws Exception {
        for (String name : new String[] {"org.jspecify.annotations.NullMarked", "androidx.annotation.WorkerThread"}) {
            try {
                fail(Class.forName(name) + " is here");
            } catch (ClassNotFoundException e) {
                // As in an app without it.
            }
        }
        Class.forName("dev.oxbow.package-info");
        assertEquals(0, Model.class.getPackage().getAnnotations().length);
        Annotation[] found = Model.class.getMethod("getMetadata", String.class).getAnnotatedReturnType().getAnnotations();
        assertEquals(0, found.length);
    }
}
