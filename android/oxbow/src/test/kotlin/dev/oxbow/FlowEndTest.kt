package dev.oxbow

import java.util.concurrent.CompletableFuture
import java.util.concurrent.TimeUnit
import java.util.concurrent.TimeoutException
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.collect
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeoutOrNull
import org.junit.Assert.assertEquals
import org.junit.Test

/** However a collector ends, the flow ends with it and the session is free: each way many times. */
class FlowEndTest : Fixture() {
    private val tries = Integer.getInteger("oxbow.tries", 100)
    /** Only ways with this in their names: what hangs in one can make others hang. */
    private val wanted = System.getProperty("oxbow.way", "")

    private class Stop : RuntimeException()

    /** One way of ending a flow of a text that would not end by itself for long. */
    private val ways: Map<String, suspend (Generator) -> Unit> =
        linkedMapOf(
            "cancelAndJoin, slow collector" to { generator -> cancelled(generator, 5) { delay(20) } },
            "cancelAndJoin, fast collector" to { generator -> cancelled(generator, 3) {} },
            "cancelAndJoin, blocking collector" to { generator -> cancelled(generator, 5) { Thread.sleep(10) } },
            "cancelAndJoin, at once" to { generator -> cancelled(generator, 0) { delay(20) } },
            "withTimeout, slow collector" to
                { generator -> withTimeoutOrNull(5) { generator.textFlow("And").collect { delay(20) } } },
            "withTimeout, fast collector" to
                { generator -> withTimeoutOrNull(3) { generator.textFlow("And").collect {} } },
            "first" to { generator -> generator.textFlow("And").first() },
            "exception of the collector" to
                { generator ->
                    try {
                        generator.textFlow("And").collect { throw Stop() }
                    } catch (e: Stop) {
                        // As was wanted.
                    }
                },
            "scope cancelled" to
                { generator ->
                    val scope = CoroutineScope(Dispatchers.Default + Job())
                    val job = scope.launch { generator.textFlow("And").collect { delay(20) } }
                    delay(5)
                    scope.coroutineContext[Job]!!.cancel()
                    job.join()
                },
            "end of the text" to { generator -> generator.textFlow("And").collect {} },
        )

    private suspend fun cancelled(generator: Generator, after: Long, collect: suspend (String) -> Unit) {
        val job = CoroutineScope(Dispatchers.Default).launch { generator.textFlow("And").collect { collect(it) } }
        if (after > 0) delay(after)
        job.cancelAndJoin()
    }

    /** Whether it ended in time. One that did not keeps its threads. */
    private fun ends(way: suspend (Generator) -> Unit, generator: Generator): Boolean {
        val done = CompletableFuture<Unit>()
        val thread =
            Thread {
                try {
                    runBlocking { way(generator) }
                    done.complete(Unit)
                } catch (e: Throwable) {
                    done.completeExceptionally(e)
                }
            }
        thread.isDaemon = true
        thread.start()
        return try {
            done.get(10, TimeUnit.SECONDS)
            true
        } catch (e: TimeoutException) {
            false
        }
    }

    @Test
    fun aFlowEndsWithItsCollector() {
        val hung = LinkedHashMap<String, Int>()
        for ((name, way) in ways.filterKeys { wanted in it }) {
            hung[name] = 0
            val tokens = if (name == "end of the text") 20L else 1_000_000L
            var left = tries
            while (left-- > 0) {
                val model = demo()
                val session = Session.create(model)
                val generator = Generator.create(session, GeneratorOptions().maxTokens(tokens))
                if (ends(way, generator)) {
                    session.reset() // Refused while it is busy.
                } else {
                    hung[name] = hung[name]!! + 1
                }
                generator.close()
                session.close()
                model.close()
            }
            println("%-36s hung %d of %d".format(name, hung[name], tries))
        }
        assertEquals(hung.toString(), 0, hung.values.sum())
    }
}
