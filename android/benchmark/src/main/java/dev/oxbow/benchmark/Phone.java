package dev.oxbow.benchmark;

import android.content.Context;
import android.os.BatteryManager;
import android.os.Build;
import android.os.PowerManager;

/** What an app may ask about the phone, while most files of the kernel are closed to it. */
final class Phone {
    private final PowerManager power;
    private final BatteryManager battery;

    Phone(Context context) {
        power = (PowerManager) context.getSystemService(Context.POWER_SERVICE);
        battery = (BatteryManager) context.getSystemService(Context.BATTERY_SERVICE);
    }

    /** As a JSON object; what the phone does not tell is left out. */
    String state() {
        StringBuilder json = new StringBuilder("{");
        if (Build.VERSION.SDK_INT >= 29 && power != null) {
            // 0: none, 1: light, ... 6: shutdown.
            add(json, "thermal_status", power.getCurrentThermalStatus());
        }
        if (battery != null) {
            addKnown(json, "battery_current_microamperes", BatteryManager.BATTERY_PROPERTY_CURRENT_NOW);
            addKnown(json, "battery_percent", BatteryManager.BATTERY_PROPERTY_CAPACITY);
            addKnown(json, "battery_charge_microampere_hours", BatteryManager.BATTERY_PROPERTY_CHARGE_COUNTER);
        }
        return json.append("}").toString();
    }

    private void addKnown(StringBuilder json, String name, int property) {
        int value = battery.getIntProperty(property);
        // What it cannot tell is one of these, by version.
        if (value != Integer.MIN_VALUE && value != 0) {
            add(json, name, value);
        }
    }

    private static void add(StringBuilder json, String name, int value) {
        json.append(json.length() > 1 ? "," : "").append('"').append(name).append("\":").append(value);
    }
}
