import type { AdminPermission } from '../../../contract/admin-routes.ts'
import { useStore } from '../store.ts'
import type { DialogSpec } from './dialog-spec.ts'

type ActionButtonProps = {
  /** What the action needs: without it the button is not offered. */
  needs: AdminPermission
  spec: () => DialogSpec
  children: string
  tone?: 'primary' | 'danger' | 'quiet'
  label?: string
}

/** Opens the dialog of a change. */
export function ActionButton({ needs, spec, children, tone, label }: ActionButtonProps) {
  const { may, dialog } = useStore()
  if (!may(needs)) return null
  return (
    <button
      type="button"
      class={tone === 'quiet' ? 'quiet-button' : `button ${tone === 'danger' ? 'danger-text' : (tone ?? '')}`}
      aria-label={label}
      onClick={() => (dialog.value = spec())}
    >
      {children}
    </button>
  )
}
