import { useSignal } from '@preact/signals'
import { TokenInput } from '../../../ui/page/token-input.tsx'
import { useStore } from '../store.ts'

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
      <TokenInput text={text} placeholder="Token" />
      <button type="submit" class="use-token">
        Use
      </button>
      <span class="token-status" role="status">
        {message.value}
      </span>
    </form>
  )
}
