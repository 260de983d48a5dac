package dev.oxbow;

import java.util.Objects;

/**
 * An accelerator, opened by its plug-in. It computes the layers that a model file has for it ({@code oxbow-convert --npu});
 * sessions on any threads may share one ({@link SessionOptions#npu}), and keep it when it is closed.
 */
public final class Npu extends NativeObject {
    private Npu() {}

    /**
     * Opens an accelerator with no settings.
     *
     * @param plugin as with options
     * @return the accelerator
     */
    public static Npu open(String plugin) {
        return open(plugin, new NpuOptions());
    }

    /**
     * Opens an accelerator.
     *
     * @param plugin one that is built in ({@code ethosu}), the path of a library, or NAME for {@code
     *     liboxbow_npu_NAME.so} in the app's own folder for native libraries. Vendors' libraries are not verified: name
     *     only what you trust.
     * @param options its settings, and who hears what it says
     * @return the accelerator
     * @throws OxbowException {@link OxbowException#NO_DEVICE} with the reason when the plug-in or its device is not
     *     there
     */
    public static Npu open(String plugin, NpuOptions options) {
        byte[][] settings = new byte[options.settings.size()][];
        for (int i = 0; i < settings.length; ++i) {
            settings[i] = Text.encode(options.settings.get(i));
        }
        byte[] name = Text.encode(Objects.requireNonNull(plugin));
        Npu npu = new Npu();
        npu.own(npu.open(name, settings, options.log == null ? null : new LogSink(options.log)));
        return npu;
    }

    private native long open(byte[] plugin, byte[][] settings, LogSink log);
}
