package dev.oxbow

import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import org.junit.Assert.assertEquals
import org.junit.Assert.assertTrue
import org.junit.Test

/** What a generation tells beside its text. */
class EventFlowTest : Fixture() {
    private fun <T> withGenerator(options: GeneratorOptions, use: (Generator) -> T): T =
        demo().use { model ->
            Session.create(model).use { session -> Generator.create(session, options).use(use) }
        }

    @Test
    fun thePromptThenPiecesWithTheirRateThenTheEnd() =
        withGenerator(Tool.options()) { generator ->
            val prompt = read("prompt.txt")
            val events = runBlocking { generator.eventFlow(prompt).toList() }
            val prompts = events.takeWhile { it is GenerationEvent.Prompt }.map { it as GenerationEvent.Prompt }
            assertEquals(listOf(0, prompt.length), prompts.map { it.done })
            assertTrue(prompts.all { it.all == prompt.length })
            val pieces = events.drop(prompts.size).dropLast(1).map { it as GenerationEvent.Piece }
            assertEquals(read("demo.txt"), pieces.joinToString("") { it.text })
            // A token is a character here.
            assertEquals((1L..Tool.TOKENS).toList(), pieces.map { it.tokens })
            assertTrue(pieces.first().tokensPerSecond.isNaN())
            assertTrue(pieces.drop(1).all { it.tokensPerSecond > 0 })
            val end = (events.last() as GenerationEvent.End).generation
            assertEquals(Generation.Reason.MAX_TOKENS, end.reason)
            assertEquals(Tool.TOKENS.toLong(), end.tokens)
            val rate = (end.tokens - 1) * 1e9 / end.tokenNanoseconds
            assertEquals(rate, pieces.last().tokensPerSecond, rate / 100)
        }

    @Test
    fun aLongPromptIsToldInParts() =
        withGenerator(GeneratorOptions().maxTokens(1)) { generator ->
            val prompt = "And the river. ".repeat(300)
            val done =
                runBlocking { generator.eventFlow(prompt).toList() }.filterIsInstance<GenerationEvent.Prompt>().map { it.done }
            assertEquals((0 until prompt.length step 512).toList() + prompt.length, done)
        }

    /** The rate is the model's: a collector that takes its time does not show in it. */
    @Test
    fun aSlowCollectorDoesNotShowInTheRate() =
        withGenerator(GeneratorOptions().maxTokens(100)) { generator ->
            val before = System.nanoTime()
            var last = Double.NaN
            runBlocking {
                generator.eventFlow("And").collect {
                    delay(5)
                    if (it is GenerationEvent.Piece) last = it.tokensPerSecond
                }
            }
            val shown = 100 * 1e9 / (System.nanoTime() - before)
            assertTrue("$last of the model, $shown on the screen", last > 2 * shown)
        }

    @Test
    fun anEmptyPromptHasItsEventToo() =
        withGenerator(Tool.options()) { generator ->
            val first = runBlocking { generator.eventFlow("").first() } as GenerationEvent.Prompt
            assertEquals(0, first.all)
        }

    @Test
    fun theWholeTextInOneCall() =
        withGenerator(Tool.options()) { generator ->
            assertEquals(read("demo.txt"), runBlocking { generator.awaitText(read("prompt.txt")) })
        }
}
