package android.content;

public class Intent {
    public native String getStringExtra(String name);
}
