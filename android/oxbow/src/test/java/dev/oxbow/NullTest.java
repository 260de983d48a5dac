package dev.oxbow;

import static org.junit.Assert.assertTrue;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.Test;

/** Every public method with each of its references null in turn: an exception of Java, never a crash. */
public class NullTest extends Fixture {
    private static Object sample(Class<?> type, Map<Class<?>, Object> objects) {
        Object found = objects.get(type);
        if (found == null) {
            throw new AssertionError("the test has no " + type);
        }
        return found;
    }

    private static void callWithNulls(Object object, Class<?> owner, Map<Class<?>, Object> objects, int[] calls)
            throws IllegalAccessException {
        for (Method method : owner.getDeclaredMethods()) {
            Class<?>[] types = method.getParameterTypes();
            if (!Modifier.isPublic(method.getModifiers()) || method.isSynthetic() || method.getName().equals("equals")) {
                continue;
            }
            for (int i = 0; i < types.length; ++i) {
                if (types[i].isPrimitive()) {
                    continue;
                }
                Object[] arguments = new Object[types.length];
                for (int j = 0; j < types.length; ++j) {
                    arguments[j] = j == i ? null : sample(types[j], objects);
                }
                try {
                    method.invoke(Modifier.isStatic(method.getModifiers()) ? null : object, arguments);
                    throw new AssertionError(method + " takes null as argument " + i);
                } catch (InvocationTargetException e) {
                    boolean expected =
                            e.getCause() instanceof NullPointerException || e.getCause() instanceof OxbowException;
                    assertTrue(method + ": " + e.getCause(), expected);
                }
                ++calls[0];
            }
        }
    }

    @Test
    public void aNullIsAnException() throws IllegalAccessException {
        Map<Class<?>, Object> objects = new LinkedHashMap<>();
        objects.put(int.class, 1);
        objects.put(long.class, 1L);
        objects.put(boolean.class, true);
        objects.put(String.class, "a");
        objects.put(int[].class, new int[] {1});
        objects.put(int[][].class, new int[][] {{1}});
        objects.put(float[].class, new float[] {1});
        objects.put(byte[].class, new byte[1]);
        objects.put(String[].class, new String[] {"a"});
        objects.put(ByteBuffer.class, direct(1 << 20));
        objects.put(java.io.File.class, new java.io.File("/no/such/file"));
        objects.put(TextListener.class, (TextListener) piece -> true);
        objects.put(LogListener.class, (LogListener) (level, line) -> {});
        for (Class<?> type :
                new Class<?>[] {
                    Backend.class, Pooling.class, Role.class, Constraint.class, Access.class, BeamStop.class, Metric.class
                }) {
            objects.put(type, type.getEnumConstants()[0]);
        }
        int[] calls = {0};
        try (Model model = demo();
                Session session = Session.create(model);
                Sampler sampler = Sampler.create(model, new SamplerOptions());
                Tokenizer tokenizer = Tokenizer.create(model);
                Generator generator = Generator.create(session);
                BeamSearch search = BeamSearch.create(session, new BeamOptions().maxTokens(9));
                LogMel mel = LogMel.create(80, 20);
                Npu npu = Npu.open(System.getProperty("oxbow.plugin"))) {
            EntryPoint entry = model.getEntries().get(0);
            ByteBuffer table = DirectBuffers.allocate((int) VectorIndex.getBytes(4, 1, Metric.DOT));
            Object[] all = {
                model, session, sampler, tokenizer, generator, search, mel, entry, entry.getInputs().get(0),
                new EntryRun(entry), new SamplerOptions(), new TokenizerOptions(), new GeneratorOptions(),
                new SessionOptions(), new OpenOptions(), new BeamOptions(), new Cancellation(),
                npu, new NpuOptions(),
                VectorIndex.create(table, 4, 1, Metric.DOT)
            };
            objects.put(Session[].class, new Session[] {session});
            for (Object object : all) {
                objects.put(object.getClass(), object);
            }
            for (Object object : all) {
                callWithNulls(object, object.getClass(), objects, calls);
            }
            callWithNulls(null, Oxbow.class, objects, calls);
        }
        assertTrue(calls[0] + " calls", calls[0] >= 60);
    }
}
