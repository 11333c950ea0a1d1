import { useSignal } from '@preact/signals'
import { useStore } from '../store.ts'
import { TOKEN_CHARS_MAX } from '../token.ts'

/** Token input for services that require one. The field is cleared when it is submitted. */
export function TokenForm({ label }: { label: string }) {
  const { setToken } = useStore()
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
        message.value = 'checking…'
        void setToken(token).then((isAccepted) => {
          message.value = isAccepted ? '' : 'the service refused this token'
        })
      }}
    >
      <label for="token">{label}</label>
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
      <span class="token-status" role="status">
        {message.value}
      </span>
    </form>
  )
}
