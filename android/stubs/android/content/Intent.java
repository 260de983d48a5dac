package android.content;

public class Intent {
    public Intent() {}

    public Intent(Context context, Class<?> activity) {}

    public native String getStringExtra(String name);
}
