package android.os;

public class BatteryManager {
    public static final int BATTERY_PROPERTY_CHARGE_COUNTER = 1;
    public static final int BATTERY_PROPERTY_CURRENT_NOW = 2;
    public static final int BATTERY_PROPERTY_CAPACITY = 4;

    public native int getIntProperty(int id);
}
