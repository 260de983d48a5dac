package android.app;

public class Activity extends android.content.Context {
    protected native void onCreate(android.os.Bundle state);

    protected native void onDestroy();

    public native void setContentView(android.view.View view);

    public final native void runOnUiThread(Runnable action);

    @Override
    public native android.content.res.AssetManager getAssets();

    @Override
    public native java.io.File getNoBackupFilesDir();

    @Override
    public native String getPackageCodePath();

    public native android.content.Intent getIntent();

    public native android.view.Window getWindow();

    public native java.io.File getExternalFilesDir(String type);

    public native android.content.pm.ApplicationInfo getApplicationInfo();

    @Override
    public native Object getSystemService(String name);
}
