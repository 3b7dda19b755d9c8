export { OpenRequestScreen as Component } from "@/features/my-requests/components/open-request-screen";
