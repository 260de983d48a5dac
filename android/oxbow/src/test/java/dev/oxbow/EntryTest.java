package dev.oxbow;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.junit.Test;

/** Entry points with named inputs and outputs, batches, tensors by name, drafts. */
public class EntryTest extends Fixture {
    private static float[] floats(ByteBuffer buffer, int count) {
        float[] values = new float[count];
        buffer.duplicate().order(ByteOrder.nativeOrder()).asFloatBuffer().get(values);
        return values;
    }

    @Test
    public void aModelTellsItsEntryPoints() {
        try (Model model = open("t5.oxb")) {
            assertEquals(2, model.getEntries().size());
            assertEquals("encode", model.getEntries().get(0).getName());
            EntryPoint step = model.getEntry("step");
            assertEquals(model.getOutputWidth(), step.getOutputs().get(0).getWidth());
            assertEquals(model.getMaxSegment(), step.getMaxRows());
            EntryInput tokens = step.getInputs().get(0);
            assertEquals(ValueType.I32, tokens.getType());
            assertEquals(model.getVocabulary(), tokens.getLimit());
            assertTrue(tokens.isRequired());
            assertEquals(tokens, step.getInput(tokens.getName()));
            refused(OxbowException.INVALID_ARGUMENT, () -> model.getEntry("nothing"));
            refused(OxbowException.INVALID_ARGUMENT, () -> step.getInput("nothing"));
            refused(OxbowException.INVALID_ARGUMENT, () -> step.getOutput("nothing"));
            assertEquals(model.getMetadata("architecture"), model.getAllMetadata().get("architecture"));
            assertFalse(model.getTokenizerKind() == TokenizerKind.NONE);
        }
    }

    @Test
    public void aRunByNamesGivesTheBitsOfAPlainOne() throws IOException {
        int[] prompt = Arrays.copyOf(readIds("prompt.ids"), 5);
        try (Model model = demo();
                Session plain = Session.create(model);
                Session named = Session.create(model)) {
            ByteBuffer expected = direct(3 * model.getOutputWidth() * Float.BYTES);
            ByteBuffer given = direct(3 * model.getOutputWidth() * Float.BYTES);
            EntryPoint entry = model.getEntries().get(0);
            String input = entry.getInputs().get(0).getName();
            String output = entry.getOutputs().get(0).getName();
            EntryRun run = new EntryRun(entry).output(output, given, 3).input(input, prompt);
            refused(OxbowException.INVALID_ARGUMENT, () -> run.getRows(output));
            for (int i = 0; i < 2; ++i) {
                plain.run(prompt, 0, prompt.length, expected, 3);
                named.run(run);
                assertEquals(3, run.getRows(output));
                assertEquals(expected, given);
            }
            assertEquals(plain.getPosition(), named.getPosition());
        }
    }

    @Test
    public void whatDoesNotFitAnEntryPointIsRefused() {
        try (Model model = demo();
                Session session = Session.create(model)) {
            EntryPoint entry = model.getEntries().get(0);
            String tokens = entry.getInputs().get(0).getName();
            String logits = entry.getOutputs().get(0).getName();
            ByteBuffer one = logitsOf(model);
            EntryRun run = new EntryRun(entry);
            refused(OxbowException.INVALID_ARGUMENT, () -> run.input("nothing", 1));
            refused(OxbowException.INVALID_ARGUMENT, () -> run.input(tokens, 1f));
            refused(OxbowException.INVALID_ARGUMENT, () -> run.input(tokens, direct(6)));
            refused(OxbowException.INVALID_ARGUMENT, () -> run.input(tokens, ByteBuffer.allocate(4)));
            refused(OxbowException.INVALID_ARGUMENT, () -> run.output("nothing", one, 1));
            refused(OxbowException.INVALID_ARGUMENT, () -> run.output(logits, one, -1));
            refused(OxbowException.BUFFER_TOO_SMALL, () -> run.output(logits, one, 2));
            refused(OxbowException.INVALID_ARGUMENT, () -> session.run(run));
            refused(
                    OxbowException.INVALID_ARGUMENT,
                    () -> session.run(new EntryRun(entry).input(tokens, model.getVocabulary())));
            EntryRun twice = new EntryRun(entry).input(tokens, 1).output(logits, one, 1).output(logits, one, 1);
            refused(OxbowException.INVALID_ARGUMENT, () -> session.run(twice));
            // The native side checks for itself, too: the buffer has become smaller than it was.
            ByteBuffer shrunk = direct(16);
            EntryRun changed = new EntryRun(entry).input(tokens, shrunk);
            shrunk.limit(8);
            refused(OxbowException.BUFFER_TOO_SMALL, () -> session.run(changed));
            assertEquals(0, session.getPosition());
        }
    }

    /** An entry point of one model says nothing about another's. */
    @Test
    public void anEntryPointOfAnotherModelIsRefused() {
        try (Model translator = open("t5.oxb");
                Model model = demo();
                Session session = Session.create(model)) {
            EntryPoint step = translator.getEntry("step");
            EntryRun run = new EntryRun(step).input(step.getInputs().get(0).getName(), 1);
            refused(OxbowException.INVALID_ARGUMENT, () -> session.run(run));
        }
    }

    @Test
    public void aBatchGivesTheBitsOfOneTextAfterTheOther() {
        int[][] texts = {{1, 2, 3}, {4}, {5, 6}};
        try (Model model = open("bert.oxb");
                Session session = Session.create(model)) {
            int fixed = model.getEntries().get(0).getOutputRows();
            int rows = fixed > 0 ? fixed * texts.length : 6;
            int width = model.getOutputWidth();
            ByteBuffer all = direct(rows * width * Float.BYTES);
            session.runBatch(texts, all);
            float[] batch = floats(all, rows * width);
            int at = 0;
            for (int[] text : texts) {
                int count = (fixed > 0 ? fixed : text.length) * width;
                ByteBuffer one = direct(count * Float.BYTES);
                session.run(text, 0, text.length, one, count / width);
                assertArrayEquals(floats(one, count), Arrays.copyOfRange(batch, at, at + count), 0f);
                at += count;
            }
            all.limit(all.capacity() - 4);
            refused(OxbowException.BUFFER_TOO_SMALL, () -> session.runBatch(texts, all));
            refused(OxbowException.INVALID_ARGUMENT, () -> session.runBatch(new int[][] {{-1}}, direct(1 << 16)));
        }
        try (Model model = demo();
                Session session = Session.create(model)) {
            refused(OxbowException.INVALID_ARGUMENT, () -> session.runBatch(texts, direct(1 << 16)));
        }
    }

    @Test
    public void statesAreFoundAndReadByName() {
        try (Model model = demo();
                Session session = Session.create(model)) {
            assertFalse(session.getTensorNames().isEmpty());
            session.feed(new int[] {1, 2, 3});
            int read = 0;
            for (String name : session.getTensorNames()) {
                TensorInfo tensor = session.getTensor(name);
                ByteBuffer values = direct(tensor.getRows() * tensor.getWidth() * Float.BYTES);
                session.readTensor(name, values);
                read += values.capacity();
                if (tensor.getRows() > 0) {
                    values.limit(values.capacity() - 4);
                    refused(OxbowException.BUFFER_TOO_SMALL, () -> session.readTensor(name, values));
                }
            }
            assertTrue(read > 0);
            refused(OxbowException.INVALID_ARGUMENT, () -> session.getTensor("nothing"));
        }
    }

    @Test
    public void aDraftKeepsItsFirstTokens() {
        try (Model model = open("chat.oxb");
                Session drafted = Session.create(model);
                Session plain = Session.create(model)) {
            plain.feed(new int[] {1, 2, 3, 4});
            drafted.feed(new int[] {1, 2});
            assertTrue(drafted.getDraftBytes(4) > 0);
            drafted.draft(4);
            drafted.draft(4);
            drafted.feed(new int[] {3, 4, 5});
            refused(OxbowException.INVALID_ARGUMENT, () -> drafted.keep(4));
            drafted.keep(2);
            refused(OxbowException.INVALID_ARGUMENT, () -> drafted.keep(0));
            assertEquals(4, drafted.getPosition());
            ByteBuffer expected = logitsOf(model);
            ByteBuffer given = logitsOf(model);
            plain.feed(7);
            drafted.feed(7);
            plain.readLogits(expected);
            drafted.readLogits(given);
            assertEquals(expected, given);
            refused(OxbowException.INVALID_ARGUMENT, () -> drafted.draft(-1));
            refused(OxbowException.INVALID_ARGUMENT, () -> drafted.keep(-1));
            refused(OxbowException.INVALID_ARGUMENT, () -> drafted.getDraftBytes(-1));
        }
    }
}
