import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { OIDC_LOGIN_PATH } from '../../../contract/admin-routes.ts'
import { ThemeButton } from '../../../ui/theme-button.tsx'
import { useStore } from '../store.ts'

/** Far above the length of a token. */
const TOKEN_CHARACTERS_MAX = 256

/** The token is exchanged for a session cookie that scripts cannot read; the field is cleared at once. */
export function SignIn({ message }: { message: string }) {
  const { signIn, client } = useStore()
  const token = useSignal('')
  const error = useSignal('')
  const isBusy = useSignal(false)
  const issuer = useSignal<string | undefined>(undefined)
  useEffect(() => {
    void client.issuerLabel().then((label) => {
      issuer.value = label
    })
  }, [])
  return (
    <main class="sign-in">
      <form
        class="panel"
        onSubmit={(event) => {
          event.preventDefault()
          const given = token.value.trim()
          if (given === '' || isBusy.value) return
          token.value = ''
          error.value = ''
          isBusy.value = true
          void signIn(given).then((refusal) => {
            isBusy.value = false
            error.value = refusal ?? ''
          })
        }}
      >
        <h1>
          Sluice <span class="dim">console</span>
        </h1>
        {message !== '' && <p class="notice">{message}</p>}
        {issuer.value !== undefined && (
          <p>
            <a class="button primary" href={OIDC_LOGIN_PATH}>
              Sign in with {issuer.value}
            </a>
          </p>
        )}
        <p class="field">
          <label for="token">Admin token</label>
          <input
            id="token"
            name="token"
            type="password"
            placeholder="sla_…"
            autoComplete="off"
            autoFocus
            spellcheck={false}
            maxLength={TOKEN_CHARACTERS_MAX}
            value={token.value}
            onInput={(event) => {
              token.value = event.currentTarget.value
            }}
          />
        </p>
        {error.value !== '' && (
          <p class="notice notice-error" role="alert">
            {error.value}
          </p>
        )}
        <p>
          <button type="submit" class="button primary" disabled={isBusy.value}>
            {isBusy.value ? 'Signing in…' : 'Sign in'}
          </button>
        </p>
        <div class="sign-in-help">
          <p>No token yet? On the machine that runs Sluice:</p>
          <pre>sluice admin add NAME --role owner</pre>
          <p>It prints the token once. Further administrators can be added in the console by an owner.</p>
        </div>
      </form>
      <ThemeButton />
    </main>
  )
}
