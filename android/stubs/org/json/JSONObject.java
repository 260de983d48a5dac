package org.json;

public class JSONObject {
    public JSONObject(String json) throws JSONException {}

    public native boolean has(String name);

    public native JSONObject optJSONObject(String name);

    public native String optString(String name);

    public native double optDouble(String name);

    public native long optLong(String name);

    public native int optInt(String name);

    public native String toString(int spaces) throws JSONException;
}
