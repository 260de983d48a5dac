package dev.oxbow;

/**
 * How hot the phone is, as {@code android.os.PowerManager} tells it. An app that writes long texts may pause, or take fewer
 * threads, before the system slows everything down.
 */
public final class Thermal {
    /** Nothing is known: not Android, or a version that does not tell. */
    public static final int UNKNOWN = -1;
    /** The first status at which users notice: {@code PowerManager.THERMAL_STATUS_MODERATE}. */
    public static final int MODERATE = 2;

    private Thermal() {}

    /**
     * How hot the phone is.
     *
     * @param context an {@code android.content.Context}
     * @return 0: cool, 1: light, 2: moderate, 3: severe, 4: critical, 5: emergency, 6: shutdown; {@link #UNKNOWN}
     *     before API level 29
     */
    public static int getStatus(Object context) {
        Object status = Android.call(Android.service(context, "power"), "getCurrentThermalStatus", new Class<?>[0]);
        return status instanceof Integer ? (Integer) status : UNKNOWN;
    }

    /**
     * How near the phone will be to slowing down.
     *
     * @param context an {@code android.content.Context}
     * @param seconds from now on, 0 to 60
     * @return 1 is where it does; NaN: unknown, as before API level 30, and when asked more than about once in a second
     */
    public static float getHeadroom(Object context, int seconds) {
        Object headroom =
                Android.call(
                        Android.service(context, "power"), "getThermalHeadroom", new Class<?>[] {int.class}, seconds);
        return headroom instanceof Float ? (Float) headroom : Float.NaN;
    }
}
