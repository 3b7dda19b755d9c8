export { RequestDetailScreen as Component } from "@/features/my-requests/components/detail-screen";
