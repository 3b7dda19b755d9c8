export { DraftsScreen as Component } from "@/features/my-requests/components/drafts-screen";
