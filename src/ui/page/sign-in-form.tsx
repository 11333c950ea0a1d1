import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { ThemeButton } from '../theme-button.tsx'
import { TokenInput } from './token-input.tsx'

type SignInFormProps = {
  /** The page that is signed in to. */
  title: string
  label: string
  placeholder: string
  hint?: string
  submit: string
  /** Ends when the token is accepted or refused. */
  onToken: (token: string) => Promise<void>
  /** Between the title and the field. */
  above?: ComponentChildren
  /** Why the last token was refused. */
  error?: ComponentChildren
  /** How to get a token. */
  help: ComponentChildren
}

const HINT_ID = 'token-hint'

/** Signs in with a token. The field is cleared when it is submitted. */
export function SignInForm(props: SignInFormProps) {
  const { title, label, placeholder, hint, submit, onToken, above, error, help } = props
  const token = useSignal('')
  const isBusy = useSignal(false)
  return (
    <main class="sign-in">
      <form
        class="panel"
        onSubmit={(event) => {
          event.preventDefault()
          const given = token.value.trim()
          if (given === '' || isBusy.value) return
          token.value = ''
          isBusy.value = true
          void onToken(given).finally(() => {
            isBusy.value = false
          })
        }}
      >
        <h1>
          Sluice <span class="dim">{title}</span>
        </h1>
        {above}
        <p class="field">
          <label for="token">{label}</label>
          <TokenInput
            text={token}
            placeholder={placeholder}
            hintId={hint === undefined ? undefined : HINT_ID}
            isFocused
          />
          {hint !== undefined && (
            <span class="hint" id={HINT_ID}>
              {hint}
            </span>
          )}
        </p>
        {error}
        <p>
          <button type="submit" class="button primary" disabled={isBusy.value}>
            {isBusy.value ? 'Signing in…' : submit}
          </button>
        </p>
        <div class="sign-in-help">{help}</div>
      </form>
      <ThemeButton />
    </main>
  )
}
