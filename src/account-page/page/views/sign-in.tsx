import { ErrorNotice } from '../../../ui/page/error-notice.tsx'
import type { PageError } from '../../../ui/page/page-error.ts'
import { SignInForm } from '../../../ui/page/sign-in-form.tsx'
import { useStore } from '../store.ts'

/** The token is kept in memory only. */
export function SignIn({ error }: { error: PageError | undefined }) {
  const { signIn } = useStore()
  return (
    <SignInForm
      title="your account"
      label="Token"
      placeholder="slc_…"
      hint="The token of your handover card. This page keeps it in memory only: after a reload it asks again."
      submit="Show my account"
      onToken={async (token) => void (await signIn(token))}
      error={error !== undefined && <ErrorNotice error={error} />}
      help={
        <p>
          No token, or lost it? Ask your operator for a new one. The documents need no token: <a href="docs/">docs</a>.
        </p>
      }
    />
  )
}
