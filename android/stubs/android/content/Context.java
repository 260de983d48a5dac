package android.content;

public abstract class Context {
    public static final int MODE_PRIVATE = 0;
    public static final String POWER_SERVICE = "power";
    public static final String BATTERY_SERVICE = "batterymanager";

    public abstract Context getApplicationContext();

    public abstract Object getSystemService(String name);

    public abstract android.content.res.AssetManager getAssets();

    public abstract android.content.res.Resources getResources();

    public abstract java.io.File getNoBackupFilesDir();

    public abstract String getPackageCodePath();

    public abstract SharedPreferences getSharedPreferences(String name, int mode);
}
