package android.os;

public final class PowerManager {
    public native int getCurrentThermalStatus();
}
