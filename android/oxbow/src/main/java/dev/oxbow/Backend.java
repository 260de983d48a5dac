package dev.oxbow;

/** Who computes. */
public enum Backend {
    // In the order of oxb_backend.
    /** The fastest this library has for this machine. */
    AUTO,
    /** Plain code, the specification of every other backend. */
    REFERENCE,
    /** Kernels for the processor at hand. */
    CPU,
    /** Dense layers by that library where it can, if {@link Oxbow#isBuiltIn built in}. */
    XNNPACK,
    /** Dense layers by the Arm Compute Library, if {@link Oxbow#isBuiltIn built in}. */
    ACL,
    /**
     * A Vulkan device for the steps that have a shader, if {@link Oxbow#isBuiltIn built in}. Creating a session fails
     * with {@link OxbowException#NO_DEVICE} where there is none: take another backend then.
     */
    VULKAN,
    /** Layers that the file has compiled for an accelerator, by its plug-in, which {@link SessionOptions#npu} names. */
    NPU
}
