import { useSignal } from '@preact/signals'
import { ThemeButton } from '../../../../ui/theme-button.tsx'
import type { AccountError } from '../../client.ts'
import { ErrorNotice } from '../loading.tsx'
import { useStore } from '../store.ts'

/** Far above the length of a token. */
const TOKEN_CHARACTERS_MAX = 256

/** The token is kept in memory only. The form has no action and the field no name, so that it can never be part of an address. */
export function SignIn({ error }: { error: AccountError | undefined }) {
  const { signIn } = useStore()
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
          void signIn(given).then(() => {
            isBusy.value = false
          })
        }}
      >
        <h1>
          Sluice <span class="dim">your account</span>
        </h1>
        <p class="field">
          <label for="token">Token</label>
          <input
            id="token"
            type="password"
            placeholder="slc_…"
            autoComplete="off"
            autoFocus
            spellcheck={false}
            maxLength={TOKEN_CHARACTERS_MAX}
            aria-describedby="token-hint"
            value={token.value}
            onInput={(event) => {
              token.value = event.currentTarget.value
            }}
          />
          <span class="hint" id="token-hint">
            The token of your handover card. This page keeps it in memory only: after a reload it asks again.
          </span>
        </p>
        {error !== undefined && <ErrorNotice error={error} />}
        <p>
          <button type="submit" class="button primary" disabled={isBusy.value}>
            {isBusy.value ? 'Signing in…' : 'Show my account'}
          </button>
        </p>
        <div class="sign-in-help">
          <p>
            No token, or lost it? Ask your operator for a new one. The documents need no token: <a href="docs/">docs</a>
            .
          </p>
        </div>
      </form>
      <ThemeButton />
    </main>
  )
}
