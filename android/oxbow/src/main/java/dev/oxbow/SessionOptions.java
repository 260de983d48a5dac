package dev.oxbow;

import java.nio.ByteBuffer;

/** How a session computes and where its memory is. Read when the session is created. */
public final class SessionOptions {
    int threads = 1;
    Backend backend = Backend.AUTO;
    long cpuMask;
    /** Null: the session allocates its own. */
    ByteBuffer arena;
    byte[] pipelineCache = {};
    boolean warmUp;
    /** Null: the session shares nothing. */
    Session lender;
    Npu npu;
    int npuLeastRows;
    boolean npuShadow;

    /**
     * Threads that work on a run.
     *
     * @param count the caller's included; 1 unless set
     * @return this
     */
    public SessionOptions threads(int count) {
        if (count < 1) {
            throw OxbowException.invalid(count + " threads");
        }
        threads = count;
        return this;
    }

    /**
     * Who computes.
     *
     * @param which {@link Backend#AUTO} unless set
     * @return this
     */
    public SessionOptions backend(Backend which) {
        backend = java.util.Objects.requireNonNull(which);
        return this;
    }

    /**
     * Where the threads it starts may run.
     *
     * @param mask not 0: only on the cores whose bit is set, such as the big ones
     * @return this
     */
    public SessionOptions cpuMask(long mask) {
        cpuMask = mask;
        return this;
    }

    /**
     * The session lives in this buffer instead of in memory it allocates. Nothing else may write there until the
     * session is closed and no call of it runs any more; another session is refused it.
     *
     * @param buffer a direct one, with {@link Model#getArenaBytes} bytes or more between position and limit
     * @return this
     */
    public SessionOptions arena(ByteBuffer buffer) {
        DirectBuffers.checkWritable(buffer, "the arena");
        arena = buffer;
        return this;
    }

    /**
     * Creation touches every page of the weights and of the arena, so that the first run costs what later ones do. It
     * then takes as long as reading the file.
     *
     * @param on off unless set
     * @return this
     */
    public SessionOptions warmUp(boolean on) {
        warmUp = on;
        return this;
    }

    /**
     * The session borrows from another one of the same model, as the beams of a search do: it owns only its stream, of
     * {@link SessionPlan#getBeamBytes}; what the lender encoded, its working memory, threads and backend serve both.
     * The two serve one call at a time together.
     *
     * @param session the lender, whose native memory stays until both are closed
     * @return this
     */
    public SessionOptions lender(Session session) {
        lender = java.util.Objects.requireNonNull(session);
        return this;
    }

    /**
     * Which accelerator computes the layers that the file has for it, and {@link Backend#NPU}.
     *
     * @param which the session keeps it, also when it is closed
     * @return this
     */
    public SessionOptions npu(Npu which) {
        npu = java.util.Objects.requireNonNull(which);
        return backend(Backend.NPU);
    }

    /**
     * Runs of a layer with fewer rows stay on the CPU: reading weights is all they cost.
     *
     * @param rows 8 unless set
     * @return this
     */
    public SessionOptions npuLeastRows(int rows) {
        if (rows < 1) {
            throw OxbowException.invalid(rows + " rows");
        }
        npuLeastRows = rows;
        return this;
    }

    /**
     * The CPU computes what the accelerator does as well, its results are used, and {@link Session#getNpuReport} tells
     * how they differ.
     *
     * @param on off unless set
     * @return this
     */
    public SessionOptions npuShadow(boolean on) {
        npuShadow = on;
        return this;
    }

    /** As the native code reads them; what they name must be reachable until it has. */
    long[] numbers() {
        return new long[] {
            threads,
            backend.ordinal(),
            cpuMask,
            warmUp ? 1 : 0,
            npuLeastRows,
            npuShadow ? 1 : 0,
            lender == null ? 0 : lender.handle(),
            npu == null ? 0 : npu.handle()
        };
    }

    /**
     * Shaders that need not be compiled again.
     *
     * @param cache what {@link Session#getPipelineCache} gave, perhaps to an earlier process; ignored when it is
     *     damaged or of another device or driver
     * @return this
     */
    public SessionOptions pipelineCache(byte[] cache) {
        pipelineCache = cache.clone();
        return this;
    }
}
