package android.content;

public interface SharedPreferences {
    interface Editor {
        Editor putInt(String key, int value);

        Editor putString(String key, String value);

        void apply();
    }

    int getInt(String key, int otherwise);

    String getString(String key, String otherwise);

    Editor edit();
}
