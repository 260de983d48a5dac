package dev.oxbow

import java.util.Locale
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.delay
import kotlinx.coroutines.runBlocking
import org.junit.Assert.assertEquals
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Test

/** One call, one answer: those of the command line. */
class AnswersTest : Fixture() {
    private fun <T> ask(name: String, question: suspend (TextModel) -> T): T = runBlocking {
        openTextModel(FILES.resolve(name).toFile()).use { question(it) }
    }

    private fun lines(answers: List<Scored>): String =
        answers.joinToString("") { "%.6f  %s%n".format(Locale.ROOT, it.probability, it.text) }

    @Test
    fun classes() = assertEquals(read("classes.txt"), ask("classes.oxb") { lines(it.awaitClasses("river")) })

    @Test
    fun aVector() {
        val expected = read("vectors.river.txt").trim().split(" ").map(String::toFloat)
        assertEquals(expected, ask("vectors.oxb") { it.awaitVector("river").toList() })
    }

    @Test
    fun aTranslation() =
        assertEquals(read("t5.translation.txt").trim(), ask("t5.oxb") { it.awaitTranslation("The river is long.") })

    @Test
    fun wordsForAGap() {
        val words = ask("bert.oxb") { it.awaitWords("the [MASK] river", 5) }
        assertEquals(5, words.size)
        assertTrue(lines(words.take(1)), lines(words.take(1)) in read("gap.txt"))
    }

    @Test
    fun whatIsRefusedIsTold() {
        val refused = assertThrows(MisuseException::class.java) { ask("classes.oxb") { it.awaitTranslation("river") } }
        assertEquals(OxbowException.INVALID_ARGUMENT, refused.code)
    }

    /** Whenever it is cancelled, the next answer is the right one: nothing of the cancelled one is left. */
    @Test
    fun aCancelledAnswerLeavesTheModelAsItWas() {
        val right = read("t5.translation.txt").trim()
        var cancelled = 0
        ask("t5.oxb") { model ->
            repeat(100) { i ->
                runBlocking(Dispatchers.Default) {
                    val answer = async { model.awaitTranslation("The river is long.") }
                    if (i % 5 > 0) delay(i % 5L)
                    answer.cancel()
                    try {
                        assertEquals(right, answer.await())
                    } catch (e: CancellationException) {
                        ++cancelled
                    }
                }
                assertEquals(right, model.awaitTranslation("The river is long."))
            }
        }
        assertTrue("$cancelled of 100", cancelled > 0)
    }
}
