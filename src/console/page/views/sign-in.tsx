import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { OIDC_LOGIN_PATH } from '../../../contract/admin-routes.ts'
import { SignInForm } from '../../../ui/page/sign-in-form.tsx'
import { useStore } from '../store.ts'

/** The token is exchanged for a session cookie that scripts cannot read. */
export function SignIn({ message }: { message: string }) {
  const { signIn, client } = useStore()
  const error = useSignal('')
  const issuer = useSignal<string | undefined>(undefined)
  useEffect(() => {
    void client.issuerLabel().then((label) => {
      issuer.value = label
    })
  }, [])
  return (
    <SignInForm
      title="console"
      label="Admin token"
      placeholder="sla_…"
      submit="Sign in"
      onToken={async (token) => {
        error.value = ''
        error.value = (await signIn(token)) ?? ''
      }}
      above={
        <>
          {message !== '' && <p class="notice">{message}</p>}
          {issuer.value !== undefined && (
            <p>
              <a class="button primary" href={OIDC_LOGIN_PATH}>
                Sign in with {issuer.value}
              </a>
            </p>
          )}
        </>
      }
      error={
        error.value !== '' && (
          <p class="notice notice-error" role="alert">
            {error.value}
          </p>
        )
      }
      help={
        <>
          <p>No token yet? On the machine that runs Sluice:</p>
          <pre>sluice admin add NAME --role owner</pre>
          <p>It prints the token once. Further administrators can be added in the console by an owner.</p>
        </>
      }
    />
  )
}
