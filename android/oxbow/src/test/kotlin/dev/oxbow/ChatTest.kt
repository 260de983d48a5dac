package dev.oxbow

import java.io.File
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import org.junit.Assert.assertEquals
import org.junit.Assert.assertNotEquals
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder

class ChatTest : Fixture() {
    @get:Rule val folder = TemporaryFolder()

    private val file = FILES.resolve("talk.oxb").toFile()
    private val options
        get() = GeneratorOptions().maxTokens(40).undoTurns(2)

    private fun <T> chat(talk: suspend (Chat) -> T): T = runBlocking { Chat.open(file, options = options).use { talk(it) } }

    @Test
    fun answersAreThoseOfTheCommandLine() = runBlocking {
        val both = Chat.open(file, options = GeneratorOptions().maxTokens(100)).use {
            it.answer("Where is it?") + "\n" + it.answer("And why?") + "\n"
        }
        assertEquals(read("example.chat.txt"), both)
    }

    @Test
    fun aQuestionTellsItsEvents() {
        val events = chat { it.ask("Where is it?").toList() }
        assertTrue(events.first() is GenerationEvent.Prompt)
        assertTrue(events.last() is GenerationEvent.End)
    }

    @Test
    fun whatWasSaidEarlierIsPartOfIt() {
        val knowing = chat {
            it.say(Role.USER, "Where is it?")
            it.say(Role.ASSISTANT, "Behind the river.")
            it.answer("And why?")
        }
        assertNotEquals(chat { it.answer("And why?") }, knowing)
        // This model's template has no place for the system's text.
        assertThrows(MisuseException::class.java) { chat { it.say(Role.SYSTEM, "Answer in one sentence.") } }
    }

    @Test
    fun aQuestionIsTakenBack() = chat {
        it.answer("Where is it?")
        val second = it.answer("And why?")
        it.undo()
        assertEquals(second, it.answer("And why?"))
        assertNotEquals(second, it.answer("And why?"))
    }

    /** One that nobody wanted to the end as well. */
    @Test
    fun aQuestionThatWasCancelledIsTakenBack() = chat {
        it.answer("Where is it?")
        val second = it.answer("And why?")
        it.undo()
        it.ask("And how?").first { event -> event is GenerationEvent.Piece }
        it.undo()
        assertEquals(second, it.answer("And why?"))
    }

    @Test
    fun aChatGoesOnInAnotherSession() {
        val state = File(folder.root, "chat.state")
        val expected = chat {
            it.answer("Where is it?")
            it.save(state)
            it.answer("And why?")
        }
        assertEquals(
            expected,
            chat {
                it.resume(state)
                it.answer("And why?")
            },
        )
        state.writeBytes(ByteArray(100))
        assertThrows(SavedStateException::class.java) { chat { it.resume(state) } }
    }

    @Test
    fun aNewChatKnowsNothing() = chat {
        val first = it.answer("Where is it?")
        it.reset()
        assertEquals(first, it.answer("Where is it?"))
    }

    @Test
    fun aModelThatDoesNotAnswerIsRefusedAndClosed() {
        assertThrows(MisuseException::class.java) { runBlocking { Chat.create(demo()) } }
    }
}
