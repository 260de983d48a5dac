package dev.oxbow

import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.fold
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import org.junit.Assert.assertEquals
import org.junit.Assert.assertThrows
import org.junit.Test

class GeneratorFlowTest : Fixture() {
    private fun <T> withGenerator(options: GeneratorOptions, use: (Session, Generator) -> T): T =
        demo().use { model ->
            Session.create(model).use { session ->
                Generator.create(session, options).use { generator -> use(session, generator) }
            }
        }

    @Test
    fun theFlowIsTheTextOfTheCommandLine() =
        withGenerator(Tool.options()) { _, generator ->
            var result: Generation? = null
            val text = runBlocking {
                generator.textFlow(read("prompt.txt")) { result = it }.fold("") { all, piece -> all + piece }
            }
            assertEquals(read("demo.txt"), text)
            assertEquals(Generation.Reason.MAX_TOKENS, result?.reason)
        }

    @Test
    fun aCollectorThatHasEnoughEndsTheGeneration() =
        withGenerator(GeneratorOptions().maxTokens(Long.MAX_VALUE)) { session, generator ->
            val pieces = runBlocking { generator.textFlow("The river").take(3).toList() }
            assertEquals(3, pieces.size)
            // Not busy any more.
            session.reset()
            assertEquals(0, session.position)
        }

    @Test
    fun whatFailsComesOutOfTheFlow() =
        withGenerator(Tool.options()) { session, generator ->
            session.close()
            val thrown = assertThrows(OxbowException::class.java) {
                runBlocking { generator.textFlow("The river").first() }
            }
            assertEquals(OxbowException.CLOSED, thrown.code)
        }
}
