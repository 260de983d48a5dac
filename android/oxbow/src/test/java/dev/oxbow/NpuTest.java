package dev.oxbow;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.Test;

/** Accelerators by their plug-ins: that of examples/npu_plugin.c, which gives exact sums. */
public class NpuTest extends Fixture {
    private static final String PLUGIN = System.getProperty("oxbow.plugin");

    private static ByteBuffer logitsOf(Model model, Session session, int[] prompt) {
        ByteBuffer logits = logitsOf(model);
        session.feed(prompt);
        session.readLogits(logits);
        return logits;
    }

    @Test
    public void anAcceleratorGivesTheBitsOfTheCpu() throws IOException {
        int[] prompt = readIds("prompt.ids");
        try (Model model = open("npu.oxb");
                Npu npu = Npu.open(PLUGIN);
                Session cpu = Session.create(model)) {
            ByteBuffer expected = logitsOf(model, cpu, prompt);
            for (boolean shadow : new boolean[] {false, true}) {
                SessionOptions options = new SessionOptions().npu(npu).npuLeastRows(1).npuShadow(shadow);
                long device = model.getPlan(options).getDeviceBytes();
                try (Session session = Session.create(model, options)) {
                    assertEquals(device, session.getBackendBytes());
                    assertEquals(expected, logitsOf(model, session, prompt));
                    NpuReport report = session.getNpuReport();
                    assertTrue(report.getLayers() + " layers", report.getLayers() > 0);
                    assertTrue(report.getRuns() + " runs", report.getRuns() > 0);
                    assertTrue(report.getRows() + " rows", report.getRows() >= prompt.length);
                    assertEquals(0, report.getCpuRuns());
                    assertEquals(device, report.getDeviceBytes() + report.getHostBytes());
                    assertTrue(report.getFastBytes() <= report.getDeviceBytes());
                    assertTrue(report.getNanoseconds() > 0);
                    assertEquals(shadow, report.getCompared() > 0);
                    assertEquals(0, report.getDifferent());
                    assertEquals(0, report.getLargestDifference(), 0);
                    assertTrue(report.getLargestStep() >= 0);
                    assertNull(report.getFailure());
                    assertTrue(session.getStepProviders().toString(), session.getStepProviders().contains("npu"));
                }
            }
        }
    }

    /** As an app names one of its own: by NAME, of a library where the system looks for the app's. */
    @Test
    public void aPluginInTheFolderOfNativeLibrariesIsFoundByItsName() throws IOException {
        int[] prompt = readIds("prompt.ids");
        try (Model model = open("npu.oxb");
                Npu npu = Npu.open("example");
                Session cpu = Session.create(model);
                Session session = Session.create(model, new SessionOptions().npu(npu).npuLeastRows(1))) {
            assertEquals(logitsOf(model, cpu, prompt), logitsOf(model, session, prompt));
            assertTrue(session.getNpuReport().getRuns() > 0);
        }
        String words = refused(OxbowException.NO_DEVICE, () -> Npu.open("none"));
        assertTrue(words, words.contains("liboxbow_npu_none.so"));
    }

    @Test
    public void fewRowsStayOnTheCpu() throws IOException {
        int[] prompt = readIds("prompt.ids");
        try (Model model = open("npu.oxb");
                Npu npu = Npu.open(PLUGIN);
                Session session = Session.create(model, new SessionOptions().npu(npu))) {
            session.feed(prompt[0]);
            NpuReport report = session.getNpuReport();
            assertEquals(0, report.getRuns());
            // Those that compress have nothing to do before a row leaves the memory.
            assertTrue(report.getCpuRuns() + " runs", report.getCpuRuns() > 0 && report.getCpuRuns() <= report.getLayers());
        }
    }

    @Test
    public void aSessionKeepsItsAcceleratorWhichMayBeClosedFirst() throws IOException {
        int[] prompt = readIds("prompt.ids");
        List<String> lines = Collections.synchronizedList(new ArrayList<>());
        Npu npu = Npu.open(PLUGIN, new NpuOptions().log((level, line) -> lines.add(level + " " + line)));
        Model model = open("npu.oxb");
        Session session = Session.create(model, new SessionOptions().npu(npu).npuLeastRows(1));
        npu.close();
        model.close();
        session.feed(prompt);
        assertTrue(session.getNpuReport().getRuns() > 0);
        session.close();
        try (Model again = open("npu.oxb")) {
            refused(OxbowException.CLOSED, () -> Session.create(again, new SessionOptions().npu(npu)));
            refused(OxbowException.CLOSED, () -> again.getPlan(new SessionOptions().npu(npu)));
        }
        // The plug-in of the example has nothing to say.
        assertTrue(lines.toString(), lines.isEmpty());
    }

    @Test
    public void whatIsNotThereIsSaid() {
        String words = refused(OxbowException.NO_DEVICE, () -> Npu.open("/nowhere/liboxbow_npu_none.so"));
        assertTrue(words, words.contains("/nowhere/liboxbow_npu_none.so"));
        words = refused(OxbowException.NO_DEVICE, () -> Npu.open(PLUGIN, new NpuOptions().set("speed", "high")));
        assertTrue(words, words.contains("there is no setting 'speed'"));
        refused(OxbowException.NO_DEVICE, () -> Npu.open("ethosu", new NpuOptions().set("device", "/nowhere")));
        try (Model model = demo();
                Session session = Session.create(model)) {
            refused(OxbowException.INVALID_ARGUMENT, session::getNpuReport);
            refused(OxbowException.INVALID_ARGUMENT, () -> Session.create(model, new SessionOptions().backend(Backend.NPU)));
        }
    }
}
