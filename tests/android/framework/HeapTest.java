package dev.oxbow.framework;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import android.os.Build;
import dalvik.system.VMRuntime;
import dev.oxbow.Model;
import dev.oxbow.Oxbow;
import dev.oxbow.Session;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.annotation.Config;
import org.robolectric.annotation.Implementation;
import org.robolectric.annotation.Implements;
import org.robolectric.shadows.ShadowVMRuntime;

/** What Android's collector is told of native memory: all of it where an app may tell, and nothing where the call is not for apps. */
@RunWith(RobolectricTestRunner.class)
@Config(shadows = HeapTest.Told.class)
public class HeapTest {
    private static final AtomicLong bytes = new AtomicLong();
    private static final AtomicLong calls = new AtomicLong();

    /** The virtual machine of a phone, as far as it is told. */
    @Implements(value = VMRuntime.class, isInAndroidSdk = false)
    public static class Told extends ShadowVMRuntime {
        @Implementation
        protected void registerNativeAllocation(int count) {
            bytes.addAndGet(count);
            calls.incrementAndGet();
        }

        @Implementation
        protected void registerNativeFree(int count) {
            bytes.addAndGet(-count);
            calls.incrementAndGet();
        }
    }

    /** Android's own classes tell of theirs. */
    private long bytesBefore;
    private long callsBefore;

    @Before
    public void begin() {
        bytesBefore = bytes.get();
        callsBefore = calls.get();
    }

    @After
    public void nothingIsLeft() {
        assertEquals(0, Oxbow.getLivingObjects());
    }

    private void checkTold(long held) {
        assertEquals(Build.VERSION.SDK_INT < 28 ? held : 0, bytes.get() - bytesBefore);
    }

    @Test
    public void theCollectorIsToldOfAllNativeMemory() {
        long held = Oxbow.getNativeBytes();
        checkTold(0);
        try (Model model = Model.open(System.getProperty("oxbow.model"))) {
            for (int i = 0; i < 10; ++i) {
                Session first = Session.create(model);
                try (Session second = Session.create(model)) {
                    assertTrue(Oxbow.getNativeBytes() > held);
                    checkTold(Oxbow.getNativeBytes() - held);
                }
                first.close();
                first.close();
                checkTold(Oxbow.getNativeBytes() - held);
            }
        }
        checkTold(0);
        assertEquals(Build.VERSION.SDK_INT < 28, calls.get() > callsBefore);
    }
}
