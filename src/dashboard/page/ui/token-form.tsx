import { useSignal } from '@preact/signals'
import { useStore } from '../store.ts'
import { TOKEN_CHARS_MAX } from '../token.ts'

/** Asks for a token where the service does. The field is emptied as soon as it was sent. */
export function TokenForm({ words }: { words: string }) {
  const { giveToken } = useStore()
  const text = useSignal('')
  const message = useSignal('')
  return (
    <form
      class="token-form"
      onSubmit={(event) => {
        event.preventDefault()
        const token = text.value.trim()
        if (token === '') return
        text.value = ''
        message.value = 'asking…'
        void giveToken(token).then((isTaken) => {
          message.value = isTaken ? '' : 'the service does not take this token'
        })
      }}
    >
      <label for="token">{words}</label>
      <input
        id="token"
        name="token"
        type="password"
        placeholder="Token"
        autoComplete="off"
        spellcheck={false}
        maxLength={TOKEN_CHARS_MAX}
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value
        }}
      />
      <button type="submit" class="use-token">
        Use
      </button>
      <span class="token-said" role="status">
        {message.value}
      </span>
    </form>
  )
}
