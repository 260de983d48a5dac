package dev.oxbow;

/** All that a session takes, told before anything is created; see {@link Model#getPlan}. */
public final class SessionPlan {
    // Places in the array of the native code.
    private static final int ARENA = 0;
    private static final int SESSION = 1;
    private static final int STATE = 2;
    private static final int ACTIVATION = 3;
    private static final int SCRATCH = 4;
    private static final int DEVICE = 5;
    private static final int LIBRARY = 6;
    private static final int CHECKPOINT = 7;
    private static final int BEAM = 8;
    static final int COUNT = 9;

    private final long[] bytes;

    SessionPlan(long[] bytes) {
        this.bytes = bytes;
    }

    /** {@return of the arena, all in all: what the next four are parts of} */
    public long getArenaBytes() {
        return bytes[ARENA];
    }

    /** {@return of the arena: steps and threads} */
    public long getSessionBytes() {
        return bytes[SESSION];
    }

    /** {@return of the arena: what the stream remembers} */
    public long getStateBytes() {
        return bytes[STATE];
    }

    /** {@return of the arena: what one run computes} */
    public long getActivationBytes() {
        return bytes[ACTIVATION];
    }

    /** {@return of the arena: what one step needs for itself} */
    public long getScratchBytes() {
        return bytes[SCRATCH];
    }

    /** {@return beside the arena: memory of a device} */
    public long getDeviceBytes() {
        return bytes[DEVICE];
    }

    /** {@return beside the arena: what a library behind the backend copies the weights to} */
    public long getLibraryBytes() {
        return bytes[LIBRARY];
    }

    /** {@return bytes of a saved state or a checkpoint} */
    public long getCheckpointBytes() {
        return bytes[CHECKPOINT];
    }

    /** {@return bytes of each beam of a {@link BeamSearch} but the first} */
    public long getBeamBytes() {
        return bytes[BEAM];
    }
}
